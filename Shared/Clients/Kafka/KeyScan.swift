internal import CKafka

/// A scanned message of a key.
package struct KeyScanMessage: Equatable, Sendable {
    package let offset: Int64
    /// Milliseconds since 1970; -1 if the message has no timestamp.
    package let milliseconds: Int64
    package let isTombstone: Bool
    /// The headers' texts by name.
    package let headers: [String: String]
}

/// A scan of a partition for the messages of one key, independent of any consumer group.
package enum KeyScan {
    package struct Found: Sendable {
        package let messages: [KeyScanMessage]
        /// The offsets that were scanned.
        package let scanned: Range<Int64>
        /// The offsets that are available in the partition.
        package let available: Range<Int64>
    }

    /// - Parameters:
    ///   - countMax: The number of messages to scan, the newest of the partition.
    ///   - waitMax: The timeout of the scan, after which the results up to then are returned.
    /// - Throws: If the partition's offsets cannot be queried.
    package static func run(
        _ key: [UInt8], in partition: TopicPartition, brokers: String, properties: [String: String] = [:],
        countMax: Int64, waitMax: Duration
    ) throws(KafkaError) -> Found {
        let client = try Self.client(brokers: brokers, properties: properties)
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        let available = try client.range(of: partition, waitMax: waitMax)
        let first = max(available.lowerBound, available.upperBound - countMax)
        let list = PartitionList(capacity: 1)
        list.add(partition, offset: first)
        try KafkaError.check(unsafe rd_kafka_assign(client.pointer, list.pointer))
        defer { unsafe rd_kafka_assign(client.pointer, nil) }
        var messages: [KeyScanMessage] = []
        var next = first
        while next < available.upperBound, clock.now < end {
            let wait = min(.milliseconds(100), end - clock.now).millisecondsRoundedUp
            guard let pointer = unsafe rd_kafka_consumer_poll(client.pointer, wait) else { continue }
            defer { unsafe rd_kafka_message_destroy(pointer) }
            guard unsafe pointer.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { continue }
            next = unsafe pointer.pointee.offset + 1
            if let message = unsafe scanned(pointer, key) { messages.append(message) }
        }
        return Found(messages: messages, scanned: first..<next, available: available)
    }

    private static func scanned(
        _ pointer: UnsafeMutablePointer<rd_kafka_message_t>, _ key: [UInt8]
    ) -> KeyScanMessage? {
        let messageKey = unsafe UnsafeRawBufferPointer(start: pointer.pointee.key, count: pointer.pointee.key_len)
        guard unsafe messageKey.elementsEqual(key) else { return nil }
        return unsafe KeyScanMessage(
            offset: pointer.pointee.offset, milliseconds: rd_kafka_message_timestamp(pointer, nil),
            isTombstone: pointer.pointee.payload == nil, headers: headers(of: pointer))
    }

    /// Returns a consumer without a group's partitions, whose offsets are never committed. It reports the end of each
    /// partition.
    static func client(brokers: String, properties: [String: String]) throws(KafkaError) -> Client {
        let settings = try ClientProperties(
            brokers: brokers,
            defaults: ClientProperties.consumer.merging(["statistics.interval.ms": "0"]) { $1 }, overrides: properties,
            reserved: [
                "group.id": "fieldpost-trace", "enable.auto.commit": "false", "enable.auto.offset.store": "false",
                "enable.partition.eof": "true",
            ])
        return try Client(RD_KAFKA_CONSUMER, settings, context: ClientContext(), wakeup: nil)
    }

    /// Returns a message's headers as texts by name.
    static func headers(of pointer: UnsafeMutablePointer<rd_kafka_message_t>) -> [String: String] {
        var headers: OpaquePointer?
        var texts: [String: String] = [:]
        if unsafe rd_kafka_message_headers(pointer, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR {
            var index = 0
            var name: UnsafePointer<CChar>?
            var value: UnsafeRawPointer?
            var count = 0
            while unsafe rd_kafka_header_get_all(headers, index, &name, &value, &count) == RD_KAFKA_RESP_ERR_NO_ERROR {
                index += 1
                guard let name = unsafe name else { continue }
                unsafe texts[String(cString: name)] = unsafe String(
                    decoding: UnsafeRawBufferPointer(start: value, count: count), as: UTF8.self)
            }
        }
        return texts
    }
}
