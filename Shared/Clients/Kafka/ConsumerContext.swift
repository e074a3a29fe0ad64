internal import CKafka
internal import Glibc

/// A partition that came or went.
package enum AssignmentChange: Hashable, Sendable {
    /// Its messages will be delivered, from the committed offset on.
    case assigned(TopicPartition)
    /// Given up in order: another consumer of the group takes it after this one has let go.
    case revoked(TopicPartition)
    /// Taken away while this consumer was away (a session that timed out, a broker that forgot the group): another
    /// one may have had it already.
    case lost(TopicPartition)

    package var partition: TopicPartition {
        switch self {
        case .assigned(let partition), .revoked(let partition), .lost(let partition): partition
        }
    }
}

/// What a consumer's callbacks leave behind: its assignment and what is unfinished in it.
final class ConsumerContext: ClientContext {
    private(set) var trackers: [TopicPartition: PartitionTracker] = [:]
    var changes: [AssignmentChange] = []
    var isPausedAll = false
    var paused: Set<TopicPartition> = []
    var stalls = StallWatch()
    var lowerCommits = LowerCommits()
    /// Whether librdkafka tells of the group at all.
    var tellsState = true
    private var wasSteady = false
    /// The group was not sharing out partitions when librdkafka last told: once a second.
    var isSteady: Bool { wasSteady || !tellsState }

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

    /// Source of the name: `cgrp.join_state` of librdkafka's statistics. While it is not `steady` librdkafka's own
    /// timer commits nothing either.
    override func noteStatistics(_ json: UnsafePointer<CChar>) {
        unsafe super.noteStatistics(json)
        wasSteady = unsafe strstr(json, #""join_state": "steady""#) != nil
    }

    private func committed(
        _ code: rd_kafka_resp_err_t, _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) {
        let error = KafkaError(code)
        // What a person has to mend is told; all else is tried again.
        if error.advice != nil { note(error) }
        let answers = unsafe list.elements.compactMap { element in
            element.offset.map { offset in
                let isDone = code == RD_KAFKA_RESP_ERR_NO_ERROR && element.error == RD_KAFKA_RESP_ERR_NO_ERROR
                return (partition: element.partition, offset: offset, isDone: isDone)
            }
        }
        lowerCommits.answered(answers, now: .now, random: .random(in: 0..<1))
    }

    /// Starts afresh in a partition: what was delivered of it so far no longer counts.
    @discardableResult
    func restart(_ tracker: PartitionTracker) -> PartitionTracker {
        tracker.close()
        let next = PartitionTracker(after: tracker)
        trackers[tracker.partition] = next
        return next
    }

    func isPaused(_ partition: TopicPartition) -> Bool { isPausedAll || paused.contains(partition) }

    func rebalance(
        _ client: OpaquePointer, _ code: rd_kafka_resp_err_t,
        _ list: UnsafeMutablePointer<rd_kafka_topic_partition_list_t>
    ) {
        wasSteady = false
        guard let name = unsafe rd_kafka_rebalance_protocol(client) else {
            // The consumer is being closed, and has left its group already: there is nothing to give back.
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
            if !partitions.isEmpty { refusals.served() }
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

    /// librdkafka keeps a partition paused that is taken away while it is: it would stay so when it comes back.
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
            paused.remove(partition)
            lowerCommits.forget(partition)
            changes.append(lost ? .lost(partition) : .revoked(partition))
        }
    }

    private func note(_ error: OpaquePointer?) {
        if let error = unsafe error { note(unsafe KafkaError(consuming: error)) }
    }
}
