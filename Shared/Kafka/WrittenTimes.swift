internal import CKafka

/// When single messages were written. It reads those messages and nothing else, outside of any group's state.
package enum WrittenTimes {
    /// Asks for the times of messages, at most `waitMax` for all of them.
    ///
    /// - Parameter offsets: For each partition the offset of one message; the first one after it where it is gone.
    /// - Returns: Milliseconds since 1970. A partition is absent when there is no such message or the broker did not
    ///   answer in time.
    /// - Throws: For a property that librdkafka does not know.
    package static func load(
        _ offsets: [TopicPartition: Int64], brokers: String, properties: [String: String] = [:], waitMax: Duration
    ) throws(KafkaError) -> [TopicPartition: Int64] {
        if offsets.isEmpty { return [:] }
        // One message of each partition is looked at: no more than that need be fetched.
        let frugal = ["queued.min.messages": "1", "fetch.message.max.bytes": "4096"]
        let client = try Client(
            RD_KAFKA_CONSUMER,
            ClientProperties(
                brokers: brokers, defaults: ClientProperties.consumer.merging(frugal) { $1 }, overrides: properties,
                reserved: [
                    "group.id": "fieldpost-lag", "enable.auto.commit": "false", "enable.auto.offset.store": "false",
                ]),
            context: ClientContext(), wakeup: nil)
        let list = PartitionList(capacity: offsets.count)
        for (partition, offset) in offsets { list.add(partition, offset: offset) }
        try KafkaError.check(unsafe rd_kafka_assign(client.pointer, list.pointer))
        var times: [TopicPartition: Int64] = [:]
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        while times.count < offsets.count, clock.now < end {
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
        unsafe rd_kafka_assign(client.pointer, nil)
        return times
    }
}
