internal import CKafka
internal import Glibc

/// A change of a consumer's assignment.
package enum AssignmentChange: Hashable, Sendable {
    /// The partition's messages will be delivered, starting at the committed offset.
    case assigned(TopicPartition)
    /// The partition was handed over: another consumer of the group gets it after this one has released it.
    case revoked(TopicPartition)
    /// The partition was taken while this consumer was disconnected (a session timeout, or a broker without the group's
    /// state); another consumer may already have it.
    case lost(TopicPartition)

    package var partition: TopicPartition {
        switch self {
        case .assigned(let partition), .revoked(let partition), .lost(let partition): partition
        }
    }
}

/// The state that a consumer's callbacks maintain: its assignment and the unfinished messages.
final class ConsumerContext: ClientContext {
    private(set) var trackers: [TopicPartition: PartitionTracker] = [:]
    var changes: [AssignmentChange] = []
    var isPausedAll = false
    var stalls = StallDetector()
    var lowerCommits = LowerCommits()
    /// Whether librdkafka's statistics, which contain the group's state, are enabled.
    var hasStatistics = true
    private var wasStable = false
    /// Whether the group was not rebalancing in the latest statistics, which arrive every second.
    var isStable: Bool { wasStable || !hasStatistics }

    override func install(in configuration: OpaquePointer) {
        unsafe super.install(in: configuration)
        unsafe rd_kafka_conf_set_rebalance_cb(configuration) { client, code, partitions, opaque in
            guard let client = unsafe client, let partitions = unsafe partitions, let opaque = unsafe opaque else {
                return
            }
            let context = unsafe Unmanaged<ConsumerContext>.fromOpaque(opaque).takeUnretainedValue()
            unsafe context.rebalance(client, code, partitions)
        }
        unsafe rd_kafka_conf_set_offset_commit_cb(configuration) { _, code, offsets, opaque in
            guard let offsets = unsafe offsets, let opaque = unsafe opaque else { return }
            let context = unsafe Unmanaged<ConsumerContext>.fromOpaque(opaque).takeUnretainedValue()
            unsafe context.committed(code, offsets)
        }
    }

    /// Reads `cgrp.join_state` of librdkafka's statistics. While it is not `steady`, librdkafka's own timer does not
    /// commit either.
    override func readStatistics(_ json: UnsafePointer<CChar>) {
        unsafe super.readStatistics(json)
        wasStable = unsafe strstr(json, #""join_state": "steady""#) != nil
    }

    private func committed(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) {
        let error = KafkaError(code)
        // Report only what needs manual action; other failures are retried.
        if error.advice != nil { note(error) }
        let results = unsafe list.elements.compactMap { element in
            element.offset.map { offset in
                let isDone = code == RD_KAFKA_RESP_ERR_NO_ERROR && element.error == RD_KAFKA_RESP_ERR_NO_ERROR
                return (partition: element.partition, offset: offset, isDone: isDone)
            }
        }
        lowerCommits.completed(results, now: .now, random: .random(in: 0..<1))
    }

    /// Starts over in a partition: previous deliveries no longer count.
    @discardableResult
    func restart(_ tracker: PartitionTracker) -> PartitionTracker {
        tracker.close()
        let next = PartitionTracker(after: tracker)
        trackers[tracker.partition] = next
        return next
    }

    func rebalance(
        _ client: OpaquePointer, _ code: rd_kafka_resp_err_t,
        _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) {
        wasStable = false
        guard let name = unsafe rd_kafka_rebalance_protocol(client) else {
            // The consumer is closing and has already left its group: there is nothing to revoke.
            end(Array(trackers.keys), lost: true)
            return
        }
        let isCooperative = unsafe String(cString: name) == "COOPERATIVE"
        let partitions = unsafe list.elements.map(\.partition)
        if code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
            let error = unsafe isCooperative ? rd_kafka_incremental_assign(client, list) : nil
            if !isCooperative { unsafe rd_kafka_assign(client, list) }
            unsafe note(error)
            begin(partitions)
            if !partitions.isEmpty { rejections.served() }
        } else if code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS {
            unsafe resume(partitions, client)
            end(partitions, lost: unsafe rd_kafka_assignment_lost(client) != 0)
            let error = unsafe isCooperative ? rd_kafka_incremental_unassign(client, list) : nil
            if !isCooperative { unsafe rd_kafka_assign(client, nil) }
            unsafe note(error)
        } else {
            unsafe resume(Array(trackers.keys), client)
            end(Array(trackers.keys), lost: true)
            note(KafkaError(code))
            unsafe rd_kafka_assign(client, nil)
        }
    }

    /// Resumes revoked partitions: librdkafka would otherwise keep them paused when they are assigned again.
    private func resume(_ partitions: [TopicPartition], _ client: OpaquePointer) {
        let resumed = PartitionList(partitions.filter { trackers[$0]?.isPaused ?? false })
        unsafe rd_kafka_resume_partitions(client, resumed.pointer)
    }

    private func begin(_ partitions: [TopicPartition]) {
        for partition in partitions {
            trackers[partition]?.close()
            trackers[partition] = PartitionTracker(partition)
            changes.append(.assigned(partition))
        }
    }

    private func end(_ partitions: [TopicPartition], lost: Bool) {
        for partition in partitions {
            guard let tracker = trackers.removeValue(forKey: partition) else { continue }
            tracker.close()
            lowerCommits.cancel(partition)
            changes.append(lost ? .lost(partition) : .revoked(partition))
        }
    }

    private func note(_ error: OpaquePointer?) {
        if let error = unsafe error { note(unsafe KafkaError(consuming: error)) }
    }
}
