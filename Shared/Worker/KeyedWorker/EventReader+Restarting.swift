import Kafka
import Logging
import Postgres

extension EventReader {
    /// Reads partitions from their beginning, each in its epoch.
    ///
    /// - Returns: Why one of them could not be: its first offset is unavailable, as of a partition without a leader.
    mutating func restart(
        _ partitions: [TopicPartition: Int64], consumer: inout Consumer, connection: inout Connection
    ) throws -> KafkaError? {
        let assigned = partitions.keys.filter(consumer.assignment.contains)
        if assigned.isEmpty { return nil }
        var (firsts, failure) = consumer.firsts(of: assigned)
        for (partition, first) in firsts {
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

    /// Reads the partition from its beginning. Where the group has committed something, that this was begun is recorded
    /// once what is finished of it is committed: after a crash before, the next worker does the same.
    private mutating func restart(
        _ partition: TopicPartition, at first: Int64, epoch: Int64, consumer: inout Consumer,
        connection: inout Connection
    ) throws {
        // A partition this group never read begins the same way, and that is no news.
        logger.log(
            level: epochs[partition] == nil ? .debug : .notice,
            "reading the partition from its beginning, transport may have been lost",
            metadata: ["topic": "\(partition.topic)", "partition": "\(partition.partition)", "epoch": "\(epoch)"])
        let known = epochs[partition]
        let isFresh = known == nil && fresh.contains(partition)
        if isFresh { try connection.run(recordBegun(partition, in: epoch)) }
        try consumer.seekToBeginning(partition)
        consumer.begin(partition, at: first)
        if !isFresh {
            consumer.commitAnew(partition, from: first)
            unrecorded[partition] = epoch
        }
        if first > 0, let known, known < epoch { reread[partition] = first }
        epochs[partition] = max(epoch, known ?? 0)
        run.partition = nil
    }
}
