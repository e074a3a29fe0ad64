import Foundation
import Testing

/// Every call of librdkafka that can block, and the limit that it has.
///
/// Functions of librdkafka wait for brokers for up to 60 s, or without limit, and one of them ignores the limit that
/// it is given: a service that hangs in such a call makes no progress and reports nothing. `BlockingCallTests` of
/// KafkaTests measure that the limits hold.
@Suite struct LibrdkafkaCallTests {
    struct Call {
        let function: String
        let file: String
        let limit: String
    }

    /// Calls that the client's own threads answer wait for no broker.
    private static let local = "none: the client's main thread answers, no broker is queried"

    static let blocking = [
        Call(function: "rd_kafka_poll", file: "Admin.swift", limit: "0"),
        Call(function: "rd_kafka_controllerid", file: "Admin.swift", limit: "`waitMax`, at most 2 s"),
        Call(function: "rd_kafka_list_groups", file: "Admin+Metadata.swift", limit: "`waitMax`"),
        Call(function: "rd_kafka_queue_poll", file: "Admin+Requests.swift", limit: "`waitMax` and 1 s"),
        Call(function: "rd_kafka_offsets_for_times", file: "Client+Offsets.swift", limit: "`waitMax`"),
        Call(function: "rd_kafka_metadata", file: "Client+Offsets.swift", limit: "`waitMax`"),
        Call(function: "rd_kafka_new", file: "Client.swift", limit: "none: it starts threads, no broker is queried"),
        Call(function: "rd_kafka_destroy", file: "Client.swift", limit: "none: the client has sent no request yet"),
        Call(function: "rd_kafka_poll", file: "CoordinatorClient.swift", limit: "0"),
        Call(function: "rd_kafka_queue_poll", file: "CoordinatorClient.swift", limit: "until `waitMax`"),
        Call(function: "rd_kafka_subscribe", file: "Consumer.swift", limit: local),
        Call(function: "rd_kafka_consume_batch_queue", file: "Consumer.swift", limit: "0"),
        Call(function: "rd_kafka_consume_queue", file: "Consumer.swift", limit: "50 ms, until `closeMax` (15 s)"),
        Call(function: "rd_kafka_committed", file: "Consumer+Beginnings.swift", limit: "1 s"),
        Call(function: "rd_kafka_commit", file: "Consumer+LowerCommits.swift", limit: "0: asynchronous"),
        Call(function: "rd_kafka_seek_partitions", file: "Consumer+Beginnings.swift", limit: "`waitMax`"),
        Call(function: "rd_kafka_assign", file: "ConsumerContext.swift", limit: local),
        Call(function: "rd_kafka_incremental_assign", file: "ConsumerContext.swift", limit: local),
        Call(function: "rd_kafka_incremental_unassign", file: "ConsumerContext.swift", limit: local),
        Call(function: "rd_kafka_destroy_flags", file: "ClientDestruction.swift", limit: "5 s, on a thread of its own"),
        Call(function: "rd_kafka_consumer_poll", file: "KeyScan.swift", limit: "100 ms, until `waitMax`"),
        Call(function: "rd_kafka_assign", file: "KeyScan.swift", limit: local),
        Call(function: "rd_kafka_consumer_poll", file: "TopicScan.swift", limit: "100 ms, until `waitMax`"),
        Call(function: "rd_kafka_assign", file: "TopicScan.swift", limit: local),
        Call(function: "rd_kafka_queue_poll", file: "Producer+Queue.swift", limit: "the caller's `waitMax`"),
        Call(function: "rd_kafka_consumer_poll", file: "MessageTimestamps.swift", limit: "100 ms, until `waitMax`"),
        Call(function: "rd_kafka_assign", file: "MessageTimestamps.swift", limit: local),
    ]

    /// Calls that read or change memory of the client, or only enqueue a request.
    private static let immediate: Set = [
        "rd_kafka_CreatePartitions", "rd_kafka_CreateTopics", "rd_kafka_DescribeConfigs",
        "rd_kafka_ListConsumerGroupOffsets", "rd_kafka_assignment_lost",
        "rd_kafka_consumer_close_queue", "rd_kafka_consumer_closed", "rd_kafka_fatal_error",
        "rd_kafka_get_watermark_offsets", "rd_kafka_last_error", "rd_kafka_offsets_store", "rd_kafka_opaque",
        "rd_kafka_outq_len", "rd_kafka_pause_partitions", "rd_kafka_poll_set_consumer", "rd_kafka_producev",
        "rd_kafka_queue_destroy", "rd_kafka_queue_get_consumer", "rd_kafka_queue_get_main",
        "rd_kafka_queue_io_event_enable", "rd_kafka_queue_new", "rd_kafka_rebalance_protocol", "rd_kafka_resp_err_t",
        "rd_kafka_resume_partitions", "rd_kafka_topic_destroy", "rd_kafka_topic_name", "rd_kafka_topic_new",
        "rd_kafka_group_list_destroy", "rd_kafka_metadata_destroy", "rd_kafka_version",
    ]

    /// Functions of values: options, events, errors, lists, messages.
    private static let values = [
        "rd_kafka_AdminOptions_", "rd_kafka_ConfigEntry_", "rd_kafka_ConfigResource_", "rd_kafka_CreatePartitions_",
        "rd_kafka_CreateTopics_", "rd_kafka_DescribeConfigs_",
        "rd_kafka_ListConsumerGroupOffsets_", "rd_kafka_NewPartitions_", "rd_kafka_NewTopic_", "rd_kafka_conf_",
        "rd_kafka_err", "rd_kafka_event_", "rd_kafka_group_result_", "rd_kafka_header", "rd_kafka_message_",
        "rd_kafka_msg_partitioner_", "rd_kafka_topic_partition_list_", "rd_kafka_topic_result_",
    ]

    private static func isImmediate(_ function: String) -> Bool {
        immediate.contains(function) || values.contains(where: function.hasPrefix)
    }

    /// Add a new call to one of the lists, with its limit if it can block.
    @Test func everyCallThatCanBlockHasALimit() {
        var used: Set<String> = []
        for file in SourceFile.all where file.path.hasPrefix("Shared/Clients/Kafka/") {
            let name = String(file.path.dropFirst("Shared/Clients/Kafka/".count))
            for (index, line) in file.lines.enumerated() where !line.drop(while: { $0 == " " }).hasPrefix("//") {
                for match in line.matches(of: /(rd_kafka_\w+)\(/) {
                    let function = String(match.1)
                    if Self.isImmediate(function) { continue }
                    used.insert("\(name) \(function)")
                    let isListed = Self.blocking.contains { $0.function == function && $0.file == name }
                    #expect(isListed, "\(file.path):\(index + 1): \(function) may block; what is its limit?")
                }
            }
        }
        #expect(Set(Self.blocking.map { "\($0.file) \($0.function)" }) == used)
    }

    /// Functions with a timeout in librdkafka's header can block; so can these, which have none.
    @Test func blockingCallsAreNotListedAsImmediate() throws {
        let header = try String(contentsOfFile: "/usr/include/librdkafka/rdkafka.h", encoding: .utf8)
        let code = header.replacing(/\/\*(?:[^*]|\*(?!\/))*\*\//, with: "")
        let declared = code.split(separator: ";").filter { $0.contains("int timeout_ms") }.compactMap {
            $0.matches(of: /(rd_kafka_\w+)\s*\(/).first.map { String($0.1) }
        }
        #expect(declared.count > 15 && declared.contains("rd_kafka_flush"))
        let unlimited = [
            "rd_kafka_consumer_close", "rd_kafka_destroy", "rd_kafka_destroy_flags", "rd_kafka_unsubscribe",
            "rd_kafka_purge", "rd_kafka_commit", "rd_kafka_commit_queue", "rd_kafka_commit_message",
        ]
        let setters = ["rd_kafka_AdminOptions_set_request_timeout", "rd_kafka_AdminOptions_set_operation_timeout"]
        for function in declared + unlimited where !setters.contains(function) {
            #expect(!Self.isImmediate(function), "\(function)")
        }
    }

    /// Its limit is ignored while a partition's leader is down (librdkafka 2.0.2 to 2.8).
    @Test func callWithoutTimeoutIsNotUsed() {
        for file in SourceFile.all {
            for line in file.lines(with: "rd_kafka_query_watermark_offsets(") {
                Issue.record("\(file.path):\(line): Client.offsets has a limit that holds")
            }
        }
    }
}
