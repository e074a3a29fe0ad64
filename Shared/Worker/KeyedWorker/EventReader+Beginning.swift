import Kafka
import Logging
import Metrics
import Postgres

extension EventReader {
    /// Takes in which partitions came and went; to be called in every round, before messages are admitted.
    ///
    /// For one that came it finds out how far the group is, and asks for what was removed before the group read it.
    /// When PostgreSQL or Kafka fails on the way, the next call does the same again.
    ///
    /// - Throws: Also a fatal error, when a partition delivers nothing that has something.
    mutating func follow(_ consumer: inout Consumer, _ connection: inout Connection) throws {
        for change in consumer.takeAssignmentChanges() {
            epochs[change.partition] = nil
            unrecorded[change.partition] = nil
            reread[change.partition] = nil
            committedAnew.remove(change.partition)
            fresh.remove(change.partition)
            gaps.forget(change.partition)
            if case .assigned = change {
                begun.insert(change.partition)
                nextBeginning = .now
            } else {
                begun.remove(change.partition)
                takenAwayCount += 1
            }
        }
        try recordEpochs(&consumer, &connection)
        if !begun.isEmpty, ContinuousClock.now >= nextBeginning { try begin(&consumer, &connection) }
        if ContinuousClock.now >= nextEpoch { try followEpoch(&consumer, &connection) }
        if ContinuousClock.now >= nextDeliveryCheck {
            nextDeliveryCheck = .now + deliveryInterval
            do {
                try consumer.checkDelivery()
            } catch {
                if error.isFatal { throw error }
                // A broker that does not answer now is asked again.
                logger.debug("delivery cannot be checked", metadata: ["reason": "\(error)"])
            }
        }
    }

    /// Begins partitions anew when there is a new epoch of which no message has come.
    ///
    /// A broker that lost its content may have as many messages again as this group had read: then it would wait behind
    /// them, and what is new in them be missed until the next one comes.
    private mutating func followEpoch(_ consumer: inout Consumer, _ connection: inout Connection) throws {
        let newest = try connection.run("SELECT coalesce(max(epoch), 0) FROM realm.relay")[0].decode(Int64.self)
        nextEpoch = .now + Self.epochInterval
        let older = consumer.assignment.subtracting(begun).filter { epochs[$0].map { $0 < newest } ?? false }
        let restarted = Dictionary(uniqueKeysWithValues: older.map { ($0, newest) })
        // A partition without a leader delays no other: it is retried at the next call.
        if let failure = try restart(restarted, consumer: &consumer, connection: &connection) {
            logger.warning("partitions cannot be read from their beginning yet", metadata: ["reason": "\(failure)"])
        }
    }

    /// Records which partitions were begun anew in which epoch, once that is committed and it is known whether
    /// something is missing at their beginnings.
    private mutating func recordEpochs(_ consumer: inout Consumer, _ connection: inout Connection) throws {
        committedAnew.formUnion(consumer.takeCommittedAnew())
        committedAnew.formIntersection(unrecorded.keys)
        let recorded = unrecorded.filter { committedAnew.contains($0.key) && reread[$0.key] == nil }
        if recorded.isEmpty { return }
        try connection.run(recorded.map { recordBegun($0.key, in: $0.value) })
        for partition in recorded.keys { unrecorded[partition] = nil }
        committedAnew.subtract(recorded.keys)
    }

    /// The statement that records in which epoch a partition was begun from its beginning.
    func recordBegun(_ partition: TopicPartition, in epoch: Int64) -> Statement {
        """
        INSERT INTO pipeline.progress AS p (group_name, topic, partition, epoch)
        VALUES (\(group), \(partition.topic), \(partition.partition), \(epoch))
        ON CONFLICT (group_name, topic, partition) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
        """
    }

    /// Finds out where partitions begin, before the first message of them is admitted.
    ///
    /// One that does not tell, as it has no leader, holds up no other: it is asked again later.
    /// - Throws: When one of `required` does not tell.
    mutating func begin(
        _ consumer: inout Consumer, _ connection: inout Connection, required: Set<TopicPartition> = []
    ) throws {
        try loadEpochs(&connection)
        let (beginnings, failure) = try consumer.beginnings(of: begun)
        let expired = beginnings.filter { !$0.expired.isEmpty }
        try ask(for: expired.map { MissedOffsets(partition: $0.partition, offsets: $0.expired) }, &connection)
        for beginning in beginnings { consumer.begin(beginning.partition, at: beginning.start) }
        begun.subtract(beginnings.map(\.partition))
        fresh.formUnion(beginnings.filter(\.isFresh).map(\.partition))
        nextBeginning = .now + Self.beginningInterval
        if let failure, !begun.isDisjoint(with: required) { throw failure }
        // So that it is missed once. When it fails it is seen again, and known.
        for beginning in expired { consumer.commitAnew(beginning.partition, from: beginning.first) }
    }

    private mutating func loadEpochs(_ connection: inout Connection) throws {
        let rows = try connection.run(
            "SELECT topic, partition, epoch FROM pipeline.progress WHERE group_name = \(group)")
        for (topic, number, epoch) in try rows.decode(String.self, Int32.self, Int64.self) {
            let partition = TopicPartition(topic: topic, partition: number)
            epochs[partition] = max(epoch, epochs[partition] ?? 0)
        }
    }

    /// Has everything of the topics concerned published again: the request is stored before anything is done after
    /// which the gap would not be seen any more.
    mutating func ask(for missed: [MissedOffsets], _ connection: inout Connection) throws {
        for (topic, missed) in Dictionary(grouping: missed, by: \.partition.topic) {
            let answers = try connection.run(Republish.askForMissed(missed, of: topic))
            let isNew = answers.last.map { $0.affectedCount > 0 } ?? false
            for gap in missed {
                expired.increment(by: gap.offsets.count)
                logger.error(
                    "messages were removed before this group has read them; the topic is published again",
                    metadata: [
                        "topic": "\(topic)", "partition": "\(gap.partition.partition)", "group": "\(group)",
                        "offset": "\(gap.offsets.lowerBound)", "before": "\(gap.offsets.upperBound)",
                        "count": "\(gap.offsets.count)", "asked": isNew ? "now" : "before",
                    ])
            }
        }
    }
}
