internal import CKafka
import Essentials

/// Commits of offsets below the group's committed ones. While a partition is assigned, librdkafka itself commits only
/// higher offsets; on revocation it commits the stored one. A pure value without a clock.
///
/// Commits only while the group is stable. A coordinator processes one request of a member at a time and holds back the
/// response to its JoinGroup until all have joined. A commit sent meanwhile is processed afterwards with the previous
/// generation; librdkafka reacts to ILLEGAL_GENERATION by giving up all partitions and rejoining. Members that did this
/// alternately kept a group from stabilising for minutes.
struct LowerCommits {
    /// The offset at which delivery started, by partition that is not committed yet.
    private var pending: [TopicPartition: Int64] = [:]
    private var sent: [TopicPartition: Int64] = [:]
    private var committed: Set<TopicPartition> = []
    private var next: ContinuousClock.Instant?
    private var backoff = Backoff(first: .seconds(1), waitMax: .seconds(20))

    /// The timeout for the response to a commit.
    private static let responseMax = Duration.seconds(15)

    mutating func request(_ partition: TopicPartition, from offset: Int64) {
        cancel(partition)
        pending[partition] = offset
    }

    mutating func cancel(_ partition: TopicPartition) {
        pending[partition] = nil
        committed.remove(partition)
        // No commit is in flight any more, so there is no response to wait for.
        if sent.removeValue(forKey: partition) != nil, sent.isEmpty { next = nil }
    }

    /// Returns the offsets to commit now.
    ///
    /// - Parameter finishedBelow: The offset up to which a partition is finished; `nil` if nothing is.
    mutating func due(
        now: ContinuousClock.Instant, isStable: Bool, finishedBelow: (TopicPartition) -> Int64?
    ) -> [TopicPartition: Int64] {
        guard !pending.isEmpty, isStable, next.map({ $0 <= now }) ?? true else { return [:] }
        next = now + Self.responseMax
        sent = [:]
        for (partition, first) in pending { sent[partition] = max(first, finishedBelow(partition) ?? first) }
        return sent
    }

    /// Processes the coordinator's response to a commit, ours or one of librdkafka's own.
    mutating func completed(
        _ offsets: [(partition: TopicPartition, offset: Int64, isDone: Bool)], now: ContinuousClock.Instant,
        random: Double
    ) {
        var (isOurs, hasFailed) = (false, false)
        for response in offsets where sent[response.partition] == response.offset {
            isOurs = true
            sent[response.partition] = nil
            if response.isDone {
                pending[response.partition] = nil
                committed.insert(response.partition)
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

    /// Returns the partitions committed since the last call.
    mutating func takeCommitted() -> Set<TopicPartition> {
        defer { committed = [] }
        return committed
    }
}

extension Consumer {
    /// Commits the finished offset of a partition even if the group has committed a higher one. Retries until the
    /// commit succeeds or the partition is revoked.
    ///
    /// Required with ``seekToBeginning(_:waitMax:)`` after the broker lost its content: otherwise a restart would
    /// resume at an offset of the lost content.
    ///
    /// - Parameter offset: The offset at which delivery starts.
    package mutating func recommit(_ partition: TopicPartition, from offset: Int64) {
        guard context.trackers[partition] != nil else { return }
        let list = PartitionList()
        list.add(partition, offset: offset)
        // Replace the offset stored before, which would otherwise be committed at the next interval.
        unsafe rd_kafka_offsets_store(client.pointer, list.pointer)
        context.lowerCommits.request(partition, from: offset)
    }

    /// Returns the partitions of ``recommit(_:from:)`` that were committed since the last call.
    package mutating func takeRecommitted() -> Set<TopicPartition> { context.lowerCommits.takeCommitted() }

    /// Sends the commits that are due. Their responses are served with a later batch.
    func sendLowerCommits() {
        let due = context.lowerCommits.due(now: .now, isStable: context.isStable) {
            context.trackers[$0]?.finishedBelow
        }
        if due.isEmpty { return }
        let list = PartitionList(capacity: due.count)
        for (partition, offset) in due { list.add(partition, offset: offset) }
        // A commit that cannot be sent is retried after the response's timeout.
        unsafe rd_kafka_commit(client.pointer, list.pointer, 1)
    }
}
