@testable package import Kafka

extension Consumer {
    /// The offset after the last delivered message by partition; `nil` before the first.
    package var nextOffsets: [TopicPartition: Int64?] { context.trackers.mapValues(\.next) }

    /// The next offset to commit by partition: all lower ones are finished. `nil` before the first delivery.
    package var finishedOffsets: [TopicPartition: Int64?] { context.trackers.mapValues(\.finishedBelow) }

    /// The last non-fatal error; cleared when a broker is connected.
    package var lastError: KafkaError? { context.lastError }

    /// Whether a broker was connected in the latest statistics, which arrive every second while `nextBatch` is called.
    package var isConnected: Bool { context.isConnected }

    /// Commits finished offsets and leaves the group, as the deinitialiser does.
    package consuming func close() {}
}

extension Producer {
    /// The last non-fatal error; cleared when a broker is connected.
    package var lastError: KafkaError? { context.lastError }

    /// Whether a broker was connected in the latest statistics, which arrive every second while `deliveries` is called.
    package var isConnected: Bool { context.isConnected }

    /// Returns librdkafka's log since the last call.
    package func takeLogs() -> [LogLine] { context.logs.take() }

    /// Adds a message to the queue from copied values.
    package mutating func send(
        _ topic: String, key: [UInt8], value: [UInt8]?, headers fields: [(name: String, value: [UInt8])] = [],
        tag: UInt64 = 0, waitMax: Duration = .seconds(60)
    ) throws(KafkaError) {
        var headers = Headers(capacity: fields.count)
        for field in fields { unsafe headers.add(field.name, field.value.span.bytes) }
        if let value {
            try unsafe send(
                topic, key: key.span.bytes, value: value.span.bytes, headers: headers, tag: tag, waitMax: waitMax)
        } else {
            try unsafe send(topic, key: key.span.bytes, value: nil, headers: headers, tag: tag, waitMax: waitMax)
        }
    }
}
