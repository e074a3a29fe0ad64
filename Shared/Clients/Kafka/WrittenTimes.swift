internal import CKafka

/// When single messages were written. It reads those messages and nothing else, outside of any group's state.
///
/// Its connections are kept as long as something is asked each time. Not `Sendable`, as its client is not.
package final class WrittenTimes {
    private let properties: ClientProperties
    private var client: Client?

    /// - Throws: For a property that cannot be set here.
    package init(brokers: String, properties: [String: String] = [:]) throws(KafkaError) {
        // One message of each partition is looked at: no more than that need be fetched. What librdkafka would tell of
        // itself nobody takes between two questions.
        let frugal = ["queued.min.messages": "1", "fetch.message.max.bytes": "4096", "statistics.interval.ms": "0"]
        self.properties = try ClientProperties(
            brokers: brokers, defaults: ClientProperties.consumer.merging(frugal) { $1 }, overrides: properties,
            reserved: [
                "group.id": "fieldpost-lag", "enable.auto.commit": "false", "enable.auto.offset.store": "false",
            ])
    }

    /// Asks for the times of messages, at most `waitMax` for all of them.
    ///
    /// - Parameter offsets: For each partition the offset of one message; the first one after it where it is gone.
    ///   Without any the connections are let go.
    /// - Returns: Milliseconds since 1970. A partition is absent when there is no such message or the broker did not
    ///   answer in time.
    /// - Throws: For a property that librdkafka does not know.
    package func load(
        _ offsets: [TopicPartition: Int64], waitMax: Duration
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        if offsets.isEmpty {
            client = nil
            return [:]
        }
        let client: Client
        if let kept = self.client {
            client = kept
        } else {
            client = try Client(RD_KAFKA_CONSUMER, properties, context: ClientContext(), wakeup: nil)
            self.client = client
        }
        let list = PartitionList(capacity: offsets.count)
        for (partition, offset) in offsets { list.add(partition, offset: offset) }
        try KafkaError.check(unsafe rd_kafka_assign(client.pointer, list.pointer))
        let times = read(offsets.count, client, waitMax)
        // Those that were paused would be so again the next time.
        unsafe rd_kafka_resume_partitions(client.pointer, list.pointer)
        unsafe rd_kafka_assign(client.pointer, nil)
        return times
    }

    /// The first message of each partition that is assigned.
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
