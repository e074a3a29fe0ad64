/// What each metric is, for who reads `/metrics`. A test compares the names with those that the code makes.
enum MetricsHelp {
    /// By the name in Prometheus' text; one line without a backslash.
    static let texts: [String: String] = [
        "fieldpost_calls_in_flight": "Calls to back ends under way.",
        "fieldpost_defects_late_people": "People told by their own logins whose next round should have begun.",
        "fieldpost_defects_people": "People of an environment told by their own logins, by what is known of these.",
        "fieldpost_defects_unreadable_rows_total": "Rows of a tracker of defects that cannot be understood, when read.",
        "fieldpost_deliveries_oldest_seconds": "For how long the oldest of what is due to be delivered waits.",
        "fieldpost_deliveries_total": "Notices that were delivered, failed to be, or were given up, by way.",
        "fieldpost_parked_keys_total": "Keys that were put aside because they could not be handled.",
        "fieldpost_partitions_taken_away_total": "Partitions that a rebalance of the group gave to other workers.",
        "fieldpost_poll_dangling_references_total": "References of a back end's own data that lead nowhere, when read.",
        "fieldpost_retention_removed_total": "Rows and objects that were removed because they were old.",
        "fieldpost_retention_rows": "About how many rows a table has, as PostgreSQL last found.",
        "http_server_request_duration_seconds": "Time until the answer to a request begins.",
        "messaging_client_consumed_messages_total": "Messages taken from Kafka.",
        "messaging_client_sent_messages_total": "Messages published to Kafka.",
        "process_cpu_seconds_total": "Time of the processors that the process used, in user and system mode.",
        "process_open_fds": "Open file descriptors.",
        "process_resident_memory_bytes": "Memory of the process that is in RAM.",
        "process_start_time_seconds": "When the process started, in seconds since 1970.",
        "process_threads": "Threads of the process.",
        "worker_failures_total": "Loops that ended with an error and were started again.",
    ]
}
