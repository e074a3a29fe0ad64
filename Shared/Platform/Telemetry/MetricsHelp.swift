
/// What each metric is, for who reads `/metrics`. A test compares the names with those that the code makes.
enum MetricsHelp {
    /// By the name in Prometheus' text; one line without a backslash.
    static let texts: [String: String] = [
        "fieldpost_calls_in_flight": "Calls to back ends under way.",
        "fieldpost_circuit_keys": "Keys that wait for an environment's back end, which a group does not call for now.",
        "fieldpost_defects_late_people": "People told by their own logins whose next round should have begun.",
        "fieldpost_defects_people": "People of an environment told by their own logins, by what is known of these.",
        "fieldpost_defects_unreadable_rows_total": "Rows of a tracker of defects that cannot be understood, when read.",
        "fieldpost_deliveries_oldest_seconds": "For how long the oldest of what is due to be delivered waits.",
        "fieldpost_deliveries_total": "Notices that were delivered, failed to be, or were given up, by way.",
        "fieldpost_expired_messages_total": "Messages that a group came to and were removed by then.",
        "fieldpost_group_members": "Members of a consumer group, where brokers tell.",
        "fieldpost_group_messages_per_second":
            "Messages of a topic that a group finishes, of which the last minute counts most.",
        "fieldpost_group_rebalances_total":
            "How often a group was seen to have other members, or to share partitions out anew.",
        "fieldpost_lag_closes_seconds": "When a lag is over if all goes on as it does; absent when it grows.",
        "fieldpost_lag_expired_messages": "Messages that were removed before the group read them.",
        "fieldpost_lag_headroom_seconds":
            "How long the oldest message that a group has not read will be there at least.",
        "fieldpost_lag_seconds_are_exact":
            "1 where the lag in seconds is by the time of the oldest message itself, 0 where it is estimated.",
        "fieldpost_lag_status":
            "How a group fares, by what it committed lately: 0 OK, 1 WARN, 2 STALL, 3 STOP, 4 REWIND.",
        "fieldpost_lag_worst_status": "How a group fares on a topic where it fares worst, as fieldpost_lag_status.",
        "fieldpost_live_devices": "Devices that hold a live stream open.",
        "fieldpost_monitor_partitions_are_told":
            "1 where groups are told of by partition, 0 where there are too many for that.",
        "fieldpost_monitor_problems": "What the monitor could not ask in its last round: 0 when it sees all.",
        "fieldpost_monitor_round_seconds": "How long the last round took.",
        "fieldpost_parked_keys": "Keys that are put aside now, by what they wait for: due, waiting, circuit, dead.",
        "fieldpost_parked_keys_total": "Keys that were put aside because they could not be handled.",
        "fieldpost_parked_reasons": "Keys that are put aside, by how their reasons begin.",
        "fieldpost_partitions": "Partitions that a worker reads.",
        "fieldpost_partitions_taken_away_total": "Partitions that a rebalance of the group gave to other workers.",
        "fieldpost_backend_unreadable_records_total":
            "Number of records of a back end that could not be read, counted when read.",
        "fieldpost_poll_dangling_references_total": "References of a back end's own data that lead nowhere, when read.",
        "fieldpost_probe_lost_total": "Notes of the probe that did not come within 30 seconds, or could not be sent.",
        "fieldpost_probe_round_trip_seconds": "How long a note of the probe took through relay, Kafka and a worker.",
        "fieldpost_relay_behind_environments": "Environments whose changes are not all published.",
        "fieldpost_relay_behind_positions": "Positions of an environment that are not published yet.",
        "fieldpost_relay_behind_seconds": "How long ago the oldest change was made that is not published yet.",
        "fieldpost_relay_behind_sum_positions": "Positions of all environments that are not published yet.",
        "fieldpost_retention_removed_total": "Rows and objects that were removed because they were old.",
        "fieldpost_retention_rows": "About how many rows a table has, as PostgreSQL last found.",
        "fieldpost_topic_messages_per_second":
            "Messages that are written to a topic, of which the last minute counts most.",
        "fieldpost_topic_retention_seconds":
            "For how long a topic keeps messages; absent where age alone removes none.",
        "fieldpost_workable_backlog":
            "What a group could do now: messages that are there, and parked keys that are due.",
        "http_connections_refused_total": "Number of connections closed because their network had too many.",
        "http_server_request_duration_seconds": "Time until the answer to a request begins.",
        "kafka_consumergroup_group_lag": "Messages of a partition that the group has not finished.",
        "kafka_consumergroup_group_lag_seconds": "How long the oldest message waits that the group has not finished.",
        "kafka_consumergroup_group_max_lag": "The longest of a group's lags.",
        "kafka_consumergroup_group_max_lag_seconds": "The longest of a group's lags in seconds.",
        "kafka_consumergroup_group_offset": "What a group has committed of a partition.",
        "kafka_consumergroup_group_sum_lag": "A group's lags together.",
        "kafka_consumergroup_group_topic_sum_lag": "A group's lags on a topic together.",
        "kafka_partition_earliest_offset": "The offset of a partition's first message.",
        "kafka_partition_latest_offset": "The offset after a partition's last message.",
        "messaging_client_consumed_messages_total": "Messages taken from Kafka.",
        "messaging_client_sent_messages_total": "Messages published to Kafka.",
        "process_cpu_seconds_total": "Time of the processors that the process used, in user and system mode.",
        "process_open_fds": "Open file descriptors.",
        "process_resident_memory_bytes": "Memory of the process that is in RAM.",
        "process_start_time_seconds": "When the process started, in seconds since 1970.",
        "process_threads": "Threads of the process.",
        "tracing_spans_dropped_total":
            "Spans that no collector has: no room was left, it refused them, or it was away when the process ended.",
        "tracing_spans_exported_total": "Spans that a collector has taken.",
        "worker_failures_total": "Loops that ended with an error and were started again.",
    ]
}
