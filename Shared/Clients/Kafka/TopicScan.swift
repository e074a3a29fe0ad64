internal import CKafka

/// A message of a scanned topic, with its value.
package struct TopicScanMessage: Equatable, Sendable {
    package let partition: Int32
    package let offset: Int64
    /// Milliseconds since 1970; -1 if the message has no timestamp.
    package let milliseconds: Int64
    /// The headers' texts by name.
    package let headers: [String: String]
    /// The value's beginning as text; `nil` for a tombstone.
    package let value: String?
}

/// A scan of the newest messages of a topic, or of one of its keys, independent of any consumer group.
package enum TopicScan {
    package struct Found: Sendable {
        /// The newest first.
        package let messages: [TopicScanMessage]
        package let scannedCount: Int
        /// The number of messages that the scanned partitions have.
        package let availableCount: Int
    }

    /// The limit of a value's bytes.
    package static let valueBytesMax = 65_536

    /// - Parameters:
    ///   - key: Limits the scan to the key's messages and its partition.
    ///   - scanMax: The number of messages to scan: the newest, as many of each partition.
    ///   - countMax: The number of messages to return.
    ///   - waitMax: The timeout of the scan, after which the results up to then are returned.
    ///   - isIncluded: Whether a message with these headers is returned.
    /// - Throws: If the topic does not exist, or the partitions' offsets cannot be queried in time.
    package static func run(
        _ topic: String, key: [UInt8]? = nil, brokers: String, properties: [String: String] = [:], scanMax: Int64,
        countMax: Int, waitMax: Duration, where isIncluded: ([String: String]) -> Bool
    ) throws(KafkaError) -> Found {
        let client = try KeyScan.client(brokers: brokers, properties: properties)
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        let available = try Self.available(topic, key, client, until: end)
        let partMax = max(1, scanMax / Int64(available.count))
        let parts = available.mapValues { max($0.lowerBound, $0.upperBound - partMax)..<$0.upperBound }
        var unread = parts.filter { !$0.value.isEmpty }
        let list = PartitionList(capacity: unread.count)
        for (partition, range) in unread { list.add(partition, offset: range.lowerBound) }
        try KafkaError.check(unsafe rd_kafka_assign(client.pointer, list.pointer))
        defer { unsafe rd_kafka_assign(client.pointer, nil) }
        var messages: [TopicScanMessage] = []
        while !unread.isEmpty, clock.now < end {
            let wait = min(.milliseconds(100), end - clock.now).millisecondsRoundedUp
            guard let pointer = unsafe rd_kafka_consumer_poll(client.pointer, wait) else { continue }
            defer { unsafe rd_kafka_message_destroy(pointer) }
            let partition = unsafe TopicPartition(topic: topic, partition: pointer.pointee.partition)
            guard let last = unread[partition]?.upperBound else { continue }
            let code = unsafe pointer.pointee.err
            let offset = unsafe code == RD_KAFKA_RESP_ERR_NO_ERROR ? pointer.pointee.offset : last
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR__PARTITION_EOF else { continue }
            unread[partition] = offset + 1 < last ? offset + 1..<last : nil
            guard offset < last, let message = unsafe included(pointer, key, isIncluded) else { continue }
            messages.append(message)
            if messages.count >= 2 * countMax { messages = newest(messages, countMax) }
        }
        return Found(
            messages: newest(messages, countMax),
            scannedCount: parts.values.map(\.count).reduce(0, +) - unread.values.map(\.count).reduce(0, +),
            availableCount: available.values.map(\.count).reduce(0, +))
    }

    private static func newest(_ messages: [TopicScanMessage], _ countMax: Int) -> [TopicScanMessage] {
        Array(
            messages.sorted {
                ($0.milliseconds, $0.partition, $0.offset) > ($1.milliseconds, $1.partition, $1.offset)
            }.prefix(countMax))
    }

    /// Returns the available offsets of the topic's partitions, or of the key's.
    private static func available(
        _ topic: String, _ key: [UInt8]?, _ client: Client, until end: ContinuousClock.Instant
    ) throws(KafkaError) -> [TopicPartition: Range<Int64>] {
        let topics = try client.metadata(all: true, waitMax: end - .now).topics
        guard let count = topics[topic], count > 0 else { throw KafkaError(missing: [topic]) }
        let numbers = key.map { [TopicPartition.partition(ofKey: $0, count: count)] } ?? Array(0..<count)
        let partitions = numbers.map { TopicPartition(topic: topic, partition: $0) }
        let first = try client.offsets(at: .first, of: partitions, waitMax: end - .now)
        let last = try client.offsets(at: .end, of: partitions, waitMax: end - .now)
        var available: [TopicPartition: Range<Int64>] = [:]
        for partition in partitions {
            guard let first = first[partition], let last = last[partition] else {
                throw KafkaError(timeout: "no offsets returned for \(partition)")
            }
            available[partition] = min(first, last)..<last
        }
        return available
    }

    /// - Returns: `nil` if the message has another key, or is not included.
    private static func included(
        _ pointer: UnsafeMutablePointer<rd_kafka_message_t>, _ key: [UInt8]?, _ isIncluded: ([String: String]) -> Bool
    ) -> TopicScanMessage? {
        if let key {
            let bytes = unsafe UnsafeRawBufferPointer(start: pointer.pointee.key, count: pointer.pointee.key_len)
            guard unsafe bytes.elementsEqual(key) else { return nil }
        }
        let headers = unsafe KeyScan.headers(of: pointer)
        guard isIncluded(headers) else { return nil }
        let value = unsafe UnsafeRawBufferPointer(
            start: pointer.pointee.payload, count: min(pointer.pointee.len, valueBytesMax))
        return unsafe TopicScanMessage(
            partition: pointer.pointee.partition, offset: pointer.pointee.offset,
            milliseconds: rd_kafka_message_timestamp(pointer, nil), headers: headers,
            value: pointer.pointee.payload == nil ? nil : String(decoding: value, as: UTF8.self))
    }
}
