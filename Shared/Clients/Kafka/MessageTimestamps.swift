internal import CKafka

/// Queries the timestamps of single messages, independent of any consumer group.
///
/// Connections are reused while each call queries a message. Not `Sendable`, like its client.
package final class MessageTimestamps {
    private let properties: ClientProperties
    private var client: Client?

    /// - Throws: If a property cannot be set here.
    package init(brokers: String, properties: [String: String] = [:]) throws(KafkaError) {
        // Only one message of each partition is needed, so prefetching is minimal. Statistics are off, because they
        // would not be consumed between two calls.
        let minimalFetch = [
            "queued.min.messages": "1", "fetch.message.max.bytes": "4096", "statistics.interval.ms": "0",
        ]
        self.properties = try ClientProperties(
            brokers: brokers, defaults: ClientProperties.consumer.merging(minimalFetch) { $1 }, overrides: properties,
            reserved: [
                "group.id": "fieldpost-lag", "enable.auto.commit": "false", "enable.auto.offset.store": "false",
            ])
    }

    /// Queries the timestamps of messages, with a total timeout of `waitMax`.
    ///
    /// - Parameter offsets: The offset of one message by partition; if it was removed, the next one counts. An empty
    ///   dictionary closes the connections.
    /// - Returns: Milliseconds since 1970. A partition is absent if there is no such message or the broker did not
    ///   respond in time.
    /// - Throws: If librdkafka does not support a property.
    package func load(
        _ offsets: [TopicPartition: Int64], waitMax: Duration
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        if offsets.isEmpty {
            client = nil
            return [:]
        }
        let client: Client
        if let current = self.client {
            client = current
        } else {
            client = try Client(RD_KAFKA_CONSUMER, properties, context: ClientContext(), wakeup: nil)
            self.client = client
        }
        let list = PartitionList(capacity: offsets.count)
        for (partition, offset) in offsets { list.add(partition, offset: offset) }
        try KafkaError.check(unsafe rd_kafka_assign(client.pointer, list.pointer))
        let times = read(offsets.count, client, waitMax)
        // Resume the partitions, which would otherwise be paused in the next call.
        unsafe rd_kafka_resume_partitions(client.pointer, list.pointer)
        unsafe rd_kafka_assign(client.pointer, nil)
        return times
    }

    /// Reads the first message of each assigned partition.
    private func read(_ count: Int, _ client: Client, _ waitMax: Duration) -> [TopicPartition: Int64] {
        var times: [TopicPartition: Int64] = [:]
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        while times.count < count, clock.now < end {
            let wait = min(.milliseconds(100), end - clock.now).millisecondsRoundedUp
            guard let message = unsafe rd_kafka_consumer_poll(client.pointer, wait) else { continue }
            defer { unsafe rd_kafka_message_destroy(message) }
            guard unsafe message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { continue }
            let partition = unsafe TopicPartition(
                topic: String(cString: rd_kafka_topic_name(message.pointee.rkt)), partition: message.pointee.partition)
            guard times[partition] == nil else { continue }
            times[partition] = unsafe rd_kafka_message_timestamp(message, nil)
            let done = PartitionList([partition])
            unsafe rd_kafka_pause_partitions(client.pointer, done.pointer)
        }
        return times
    }
}
