internal import CKafka
import Essentials

/// Partitions of which something is to be committed that is below what the group has committed: librdkafka commits by
/// itself only what is higher, as long as it has a partition (what it gives up is committed as it is). A value: it has
/// no clock.
///
/// Only while the group is steady. A coordinator works off one request of a member at a time, and holds back the answer
/// to its JoinGroup until all have joined; what the member commits meanwhile comes after it with the generation before,
/// and librdkafka gives up all of its partitions for that (ILLEGAL_GENERATION) and joins anew: members that did so in
/// turn kept a group from coming to rest for minutes.
struct LowerCommits {
    /// Where delivery began of those that are not committed yet.
    private var wanted: [TopicPartition: Int64] = [:]
    private var sent: [TopicPartition: Int64] = [:]
    private var committed: Set<TopicPartition> = []
    private var next: ContinuousClock.Instant?
    private var backoff = Backoff(first: .seconds(1), waitMax: .seconds(20))

    /// An answer that has not come by then is not waited for any more.
    private static let answerMax = Duration.seconds(15)

    mutating func want(_ partition: TopicPartition, from offset: Int64) {
        forget(partition)
        wanted[partition] = offset
    }

    mutating func forget(_ partition: TopicPartition) {
        wanted[partition] = nil
        committed.remove(partition)
        // Nothing is left of what was sent: nothing is waited for.
        if sent.removeValue(forKey: partition) != nil, sent.isEmpty { next = nil }
    }

    /// What is to be committed now.
    ///
    /// - Parameter finishedBelow: How far a partition is by now; `nil`: nothing of it is finished yet.
    mutating func due(
        now: ContinuousClock.Instant, isSteady: Bool, finishedBelow: (TopicPartition) -> Int64?
    ) -> [TopicPartition: Int64] {
        guard !wanted.isEmpty, isSteady, next.map({ $0 <= now }) ?? true else { return [:] }
        next = now + Self.answerMax
        sent = [:]
        for (partition, first) in wanted { sent[partition] = max(first, finishedBelow(partition) ?? first) }
        return sent
    }

    /// What the coordinator said of a commit, ours or one of librdkafka's own.
    mutating func answered(
        _ offsets: [(partition: TopicPartition, offset: Int64, isDone: Bool)], now: ContinuousClock.Instant,
        random: Double
    ) {
        var (isOurs, hasFailed) = (false, false)
        for answer in offsets where sent[answer.partition] == answer.offset {
            isOurs = true
            sent[answer.partition] = nil
            if answer.isDone {
                wanted[answer.partition] = nil
                committed.insert(answer.partition)
            } else {
                hasFailed = true
            }
        }
        if hasFailed {
            next = now + backoff.failed(random: random)
        } else if isOurs, sent.isEmpty {
            next = nil
            backoff.succeeded()
        }
    }

    /// What was committed since the last call.
    mutating func takeCommitted() -> Set<TopicPartition> {
        defer { committed = [] }
        return committed
    }
}

extension Consumer {
    /// Has what is finished of a partition committed, although the group may have committed more: soon, and again until
    /// it is done or the partition is taken away.
    ///
    /// Needed with ``seekToBeginning(_:waitMax:)`` after the broker lost its content: a crash would otherwise resume at
    /// the offset of the lost content.
    ///
    /// - Parameter offset: Where delivery begins.
    package mutating func commitAnew(_ partition: TopicPartition, from offset: Int64) {
        guard context.trackers[partition] != nil else { return }
        let list = PartitionList()
        list.add(partition, offset: offset)
        // What was stored before must not be committed after it, at the next interval.
        unsafe rd_kafka_offsets_store(client.pointer, list.pointer)
        context.lowerCommits.want(partition, from: offset)
    }

    /// The partitions given to ``commitAnew(_:from:)`` of which that is done since the last call.
    package mutating func takeCommittedAnew() -> Set<TopicPartition> { context.lowerCommits.takeCommitted() }

    /// Sends what is due of them. The answer comes with a later batch.
    func commitLower() {
        let due = context.lowerCommits.due(now: .now, isSteady: context.isSteady) {
            context.trackers[$0]?.finishedBelow
        }
        if due.isEmpty { return }
        let list = PartitionList(capacity: due.count)
        for (partition, offset) in due { list.add(partition, offset: offset) }
        // What cannot even be sent is tried again when its answer does not come.
        unsafe rd_kafka_commit(client.pointer, list.pointer, 1)
    }
}
