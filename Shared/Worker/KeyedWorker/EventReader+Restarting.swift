import Kafka
import Logging
import Postgres

extension EventReader {
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
