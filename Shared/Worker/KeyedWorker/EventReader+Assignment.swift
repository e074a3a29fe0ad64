import Kafka
import Logging
import Metrics
import Postgres

extension EventReader {
    /// Processes changes of the assignment. Called in every cycle, before messages are admitted.
    ///
    /// For each new partition, resolves the group's offset and requests republication of messages that were removed
    /// before the group read them. If PostgreSQL or Kafka fails, the next call repeats this.
    ///
    /// - Throws: Also a fatal error if a partition that has messages delivers none.
    mutating func handleAssignmentChanges(_ consumer: inout Consumer, _ connection: inout Connection) throws {
        for change in consumer.takeAssignmentChanges() {
            epochs[change.partition] = nil
            unrecordedEpochs[change.partition] = nil
            rereadFirsts[change.partition] = nil
            recommitted.remove(change.partition)
            fresh.remove(change.partition)
            gaps.reset(change.partition)
            if case .assigned = change {
                pendingStarts.insert(change.partition)
                nextStartCheck = .now
            } else {
                pendingStarts.remove(change.partition)
                revokedCount += 1
            }
        }
        try recordEpochs(&consumer, &connection)
        if !pendingStarts.isEmpty, ContinuousClock.now >= nextStartCheck { try resolveStarts(&consumer, &connection) }
        if ContinuousClock.now >= nextEpoch { try checkEpoch(&consumer, &connection) }
        if ContinuousClock.now >= nextDeliveryCheck {
            nextDeliveryCheck = .now + deliveryInterval
            do {
                try consumer.checkDelivery()
            } catch {
                if error.isFatal { throw error }
                // An unavailable broker is queried again later.
                logger.debug("delivery check failed", metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Reads partitions from their beginning if a new epoch exists from which no message has arrived.
    ///
    /// A broker that lost its content may hold as many messages again as this group had read. The group would then wait
    /// behind them, and skip the new messages among them until the next one arrives. That includes a partition of
    /// which the group has not recorded an epoch.
    private mutating func checkEpoch(_ consumer: inout Consumer, _ connection: inout Connection) throws {
        let newest = try connection.run("SELECT coalesce(max(epoch), 0) FROM realm.relay")[0].decode(Int64.self)
        nextEpoch = .now + Self.epochInterval
        let assigned = consumer.assignment.subtracting(pendingStarts)
        let older = assigned.filter { epochs[$0].map { $0 < newest } ?? (newest > 0 && consumer.hasFetched($0)) }
        let restarted = Dictionary(uniqueKeysWithValues: older.map { ($0, newest) })
        // A partition without a leader delays no other: it is retried at the next call.
        if let failure = try restart(restarted, consumer: &consumer, connection: &connection) {
            logger.warning("seek to the beginning of partitions failed", metadata: ["reason": "\(failure)"])
        }
    }

    /// Records the epochs of partitions that were read from their beginning, once the offset is committed and messages
    /// missing at the beginning are detected.
    private mutating func recordEpochs(_ consumer: inout Consumer, _ connection: inout Connection) throws {
        recommitted.formUnion(consumer.takeRecommitted())
        recommitted.formIntersection(unrecordedEpochs.keys)
        let recorded = unrecordedEpochs.filter { recommitted.contains($0.key) && rereadFirsts[$0.key] == nil }
        if recorded.isEmpty { return }
        try connection.run(recorded.map { recordEpoch($0.key, in: $0.value) })
        for partition in recorded.keys { unrecordedEpochs[partition] = nil }
        recommitted.subtract(recorded.keys)
    }

    /// The statement that records the epoch in which a partition was read from its beginning.
    func recordEpoch(_ partition: TopicPartition, in epoch: Int64) -> Statement {
        """
        INSERT INTO pipeline.progress AS p (group_name, topic, partition, epoch)
        VALUES (\(group), \(partition.topic), \(partition.partition), \(epoch))
        ON CONFLICT (group_name, topic, partition) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
        """
    }

    /// Resolves the start offsets of partitions, before their first message is admitted.
    ///
    /// A partition without an offset, such as one without a leader, delays no other: it is queried again later.
    /// - Throws: If one of `required` has no offset.
    mutating func resolveStarts(
        _ consumer: inout Consumer, _ connection: inout Connection, required: Set<TopicPartition> = []
    ) throws {
        try loadEpochs(&connection)
        let (beginnings, failure) = try consumer.beginnings(of: pendingStarts)
        let expired = beginnings.filter { !$0.expired.isEmpty }
        try requestRepublication(
            of: expired.map { ExpiredOffsets(partition: $0.partition, offsets: $0.expired) }, &connection)
        for beginning in beginnings { consumer.begin(beginning.partition, at: beginning.start) }
        pendingStarts.subtract(beginnings.map(\.partition))
        fresh.formUnion(beginnings.filter(\.isFresh).map(\.partition))
        nextStartCheck = .now + Self.startCheckInterval
        if let failure, !pendingStarts.isDisjoint(with: required) { throw failure }
        // The gap is then detected once. If the commit fails, it is detected again, and is not new.
        for beginning in expired { consumer.recommit(beginning.partition, from: beginning.first) }
    }

    private mutating func loadEpochs(_ connection: inout Connection) throws {
        let rows = try connection.run(
            "SELECT topic, partition, epoch FROM pipeline.progress WHERE group_name = \(group)")
        for (topic, number, epoch) in try rows.decode(String.self, Int32.self, Int64.self) {
            let partition = TopicPartition(topic: topic, partition: number)
            epochs[partition] = max(epoch, epochs[partition] ?? 0)
        }
    }

    /// Requests republication of the affected topics. The request is stored before any step after which the gap would
    /// not be detectable.
    mutating func requestRepublication(of expired: [ExpiredOffsets], _ connection: inout Connection) throws {
        for (topic, gaps) in Dictionary(grouping: expired, by: \.partition.topic) {
            let answers = try connection.run(Republish.requestExpired(gaps, of: topic))
            let isNew = answers.last.map { $0.affectedCount > 0 } ?? false
            for gap in gaps {
                expiredMessages.increment(by: gap.offsets.count)
                logger.error(
                    "messages expired before they were read; republishing",
                    metadata: [
                        "topic": "\(topic)", "partition": "\(gap.partition.partition)", "group": "\(group)",
                        "offset": "\(gap.offsets.lowerBound)", "before": "\(gap.offsets.upperBound)",
                        "count": "\(gap.offsets.count)", "requested": isNew ? "now" : "before",
                    ])
            }
        }
    }

    // MARK: Restarting

    /// Reads partitions from their beginning, each in its epoch.
    ///
    /// - Returns: The error of a partition whose first offset is unavailable, such as one without a leader.
    mutating func restart(
        _ partitions: [TopicPartition: Int64], consumer: inout Consumer, connection: inout Connection
    ) throws -> KafkaError? {
        let assigned = partitions.keys.filter(consumer.assignment.contains)
        if assigned.isEmpty { return nil }
        var (firstOffsets, failure) = consumer.firstOffsets(of: assigned)
        for (partition, first) in firstOffsets {
            do {
                try restart(
                    partition, at: first, epoch: partitions[partition] ?? 0, consumer: &consumer,
                    connection: &connection)
            } catch let error as KafkaError where !error.isFatal {
                failure = error
            }
        }
        return failure
    }

    /// Reads the partition from its beginning. If the group has a committed offset, the epoch is recorded once the
    /// finished messages are committed: after a crash before that, the next worker repeats the read.
    private mutating func restart(
        _ partition: TopicPartition, at first: Int64, epoch: Int64, consumer: inout Consumer,
        connection: inout Connection
    ) throws {
        // A partition that this group never read starts the same way, without a loss.
        logger.log(
            level: epochs[partition] == nil ? .debug : .notice,
            "partition restarts, messages may have been lost",
            metadata: ["topic": "\(partition.topic)", "partition": "\(partition.partition)", "epoch": "\(epoch)"])
        let earlier = epochs[partition]
        let isFresh = earlier == nil && fresh.contains(partition)
        if isFresh { try connection.run(recordEpoch(partition, in: epoch)) }
        try consumer.seekToBeginning(partition)
        consumer.begin(partition, at: first)
        if !isFresh {
            consumer.recommit(partition, from: first)
            unrecordedEpochs[partition] = epoch
        }
        if first > 0, let earlier, earlier < epoch { rereadFirsts[partition] = first }
        epochs[partition] = max(epoch, earlier ?? 0)
        run.partition = nil
    }
}
