/// HELP texts of the metrics at `/metrics`. A test compares the names with those in the code.
enum MetricsHelp {
    /// The texts by Prometheus name; one line without a backslash.
    static let texts: [String: String] = [
        "fieldpost_archive_age_seconds": "Time since PostgreSQL archived a WAL file; 0 if none waits.",
        "fieldpost_backend_unreadable_records_total":
            "Number of records of a back end that could not be read, counted when read.",
        "fieldpost_calls_in_flight": "Number of calls to back ends in flight.",
        "fieldpost_circuit_keys": "Number of deferred keys that wait for an environment's unavailable back end.",
        "fieldpost_defects_late_people": "Number of people with personal logins whose next poll is overdue.",
        "fieldpost_defects_people": "Number of people with personal logins, by state.",
        "fieldpost_defects_unreadable_rows_total":
            "Number of defect tracker rows that could not be read, counted when read.",
        "fieldpost_deferred_keys": "Number of deferred keys by state: due, waiting, circuit, dead_lettered.",
        "fieldpost_deferred_keys_by_reason": "Number of deferred keys by the beginning of their reason.",
        "fieldpost_deferred_keys_total": "Number of deferrals of keys.",
        "fieldpost_deliveries_oldest_seconds": "Age of the oldest due delivery.",
        "fieldpost_deliveries_total": "Number of deliveries by channel and result.",
        "fieldpost_expired_messages_total": "Number of messages removed before a worker read them.",
        "fieldpost_group_members": "Number of members of a consumer group, if brokers list them.",
        "fieldpost_group_messages_per_second":
            "Number of messages of a topic that a group consumes per second, as a one-minute average.",
        "fieldpost_group_rebalances_total":
            "Number of collection cycles in which a group's members changed or it was rebalancing.",
        "fieldpost_lag_drain_seconds": "Time until lag is zero at the current rates; absent while lag grows.",
        "fieldpost_lag_expired_messages": "Number of messages removed before the group read them.",
        "fieldpost_lag_seconds_exact":
            "Whether the lag in seconds is the oldest message's timestamp (1) or estimated (0).",
        "fieldpost_lag_status": "Number of a group's status on a partition: 0 OK, 1 WARN, 2 STALL, 3 STOP, 4 REWIND.",
        "fieldpost_lag_worst_status": "Number of a group's worst status on a topic, as fieldpost_lag_status.",
        "fieldpost_leader": "Whether this instance is the leader (1) or a standby (0).",
        "fieldpost_live_devices": "Number of live streams of devices by environment.",
        "fieldpost_monitor_cycle_seconds": "Time that the last collection cycle took.",
        "fieldpost_monitor_partitions_exported":
            "Whether groups are exported by partition (1), or there are too many (0).",
        "fieldpost_monitor_problems": "Number of failed queries in the last collection cycle.",
        "fieldpost_partitions": "Number of partitions assigned to a worker.",
        "fieldpost_partitions_revoked_total": "Number of partitions that a rebalance assigned to other workers.",
        "fieldpost_poll_dangling_references_total":
            "Number of references in back-end data without a target, counted when read.",
        "fieldpost_probe_lost_total":
            "Number of synthetic probes that did not arrive within 30 seconds or could not be sent.",
        "fieldpost_probe_round_trip_seconds": "Time of a synthetic probe through relay, Kafka and a worker.",
        "fieldpost_ready": "Whether this instance is ready (1): /health/ready and /health/live return 200.",
        "fieldpost_relay_behind_environments": "Number of environments with unpublished changes.",
        "fieldpost_relay_behind_positions": "Number of unpublished positions of an environment.",
        "fieldpost_relay_behind_seconds": "Time since the oldest unpublished change of an environment.",
        "fieldpost_relay_behind_sum_positions": "Number of unpublished positions of all environments.",
        "fieldpost_retention_headroom_seconds":
            "Time until Kafka may remove the oldest message that a group has not read.",
        "fieldpost_retention_removed_total": "Number of rows and objects removed by retention.",
        "fieldpost_retention_rows": "Number of rows of a table, as PostgreSQL estimates it.",
        "fieldpost_tls_certificate_expiry_timestamp_seconds":
            "Time when the TLS certificate in use expires, in seconds since 1970.",
        "fieldpost_topic_messages_per_second":
            "Number of messages written to a topic per second, as a one-minute average.",
        "fieldpost_topic_retention_seconds":
            "Time for which a topic keeps messages; absent without time-based deletion.",
        "fieldpost_workable_backlog": "Number of available messages and due deferred keys of a group.",
        "http_connections_refused_total": "Number of connections closed because their network had too many.",
        "http_server_request_duration_seconds": "Time until the first byte of a response.",
        "kafka_consumergroup_group_lag": "Number of unfinished messages of a group on a partition.",
        "kafka_consumergroup_group_lag_seconds": "Time since the oldest unfinished message was written.",
        "kafka_consumergroup_group_max_lag": "Number of unfinished messages on a group's worst partition.",
        "kafka_consumergroup_group_max_lag_seconds": "Time since a group's oldest unfinished message was written.",
        "kafka_consumergroup_group_offset": "Number of the offset that a group has committed on a partition.",
        "kafka_consumergroup_group_sum_lag": "Number of unfinished messages of a group.",
        "kafka_consumergroup_group_topic_sum_lag": "Number of unfinished messages of a group on a topic.",
        "kafka_partition_earliest_offset": "Number of the first available offset of a partition.",
        "kafka_partition_latest_offset": "Number of the offset after a partition's last message.",
        "messaging_client_consumed_messages_total": "Number of messages consumed from Kafka.",
        "messaging_client_sent_messages_total": "Number of messages published to Kafka.",
        "process_cpu_seconds_total": "Time that the process used processors in user and system mode.",
        "process_open_fds": "Number of open file descriptors.",
        "process_resident_memory_bytes": "Size of the process's resident memory.",
        "process_start_time_seconds": "Time when the process started, in seconds since 1970.",
        "process_threads": "Number of threads of the process.",
        "tracing_spans_dropped_total":
            "Number of spans lost: the buffer was full, or the collector rejected them or was unavailable.",
        "tracing_spans_exported_total": "Number of spans that a collector accepted.",
        "worker_failures_total": "Number of worker failures; each was followed by a restart.",
    ]
}
