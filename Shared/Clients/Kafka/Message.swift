internal import CKafka
internal import Glibc

/// A received message; frees librdkafka's memory in its deinitialiser.
///
/// Key, value and headers are borrowed without copying. Not `Sendable`: other threads need copies. A message may
/// outlive its consumer.
@safe package final class Message {
    private let pointer: UnsafeMutablePointer<rd_kafka_message_t>
    /// Released after the message, because librdkafka needs the client to free it.
    private let client: Client
    let tracker: PartitionTracker
    let slot: Int

    package let offset: Int64
    /// The time of writing in milliseconds since 1970 (by the producer's or the broker's clock, depending on the
    /// topic); -1 if the broker does not return it.
    package let timestamp: Int64
    /// The offset after the previous message. Below `offset`: messages in between were removed before their delivery,
    /// or the topic has gaps because it is compacted or has transactions. Above it: the offsets went backwards, as
    /// after a broker was started empty.
    ///
    /// For the first message after an assignment or a seek, the offset passed to `Consumer.begin`, otherwise `offset`.
    package let expectedOffset: Int64

    init(
        consuming pointer: UnsafeMutablePointer<rd_kafka_message_t>, client: Client, tracker: PartitionTracker,
        expectedOffset: Int64?
    ) {
        unsafe self.pointer = pointer
        self.client = client
        self.tracker = tracker
        offset = unsafe pointer.pointee.offset
        timestamp = unsafe rd_kafka_message_timestamp(pointer, nil)
        let delivery = tracker.deliver(offset: offset)
        slot = delivery.slot
        self.expectedOffset = expectedOffset ?? delivery.expected
    }

    deinit { unsafe rd_kafka_message_destroy(pointer) }

    /// Whether offsets before it are missing, or the offsets went backwards.
    package var skippedBefore: Bool { expectedOffset != offset }

    package var topic: String { tracker.partition.topic }
    package var partition: Int32 { tracker.partition.partition }
    package var topicPartition: TopicPartition { tracker.partition }

    /// Lends the value's bytes to `body`.
    ///
    /// - Returns: `nil` for a tombstone, without calling `body`.
    package func withValue<Success, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success? {
        guard let start = unsafe pointer.pointee.payload else { return nil }
        return try body(unsafe UnsafeRawBufferPointer(start: start, count: pointer.pointee.len).bytes)
    }

    /// Lends the key's bytes to `body`.
    ///
    /// - Returns: `nil` if the message has no key, without calling `body`.
    package func withKey<Success, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success? {
        guard let start = unsafe pointer.pointee.key else { return nil }
        return try body(unsafe UnsafeRawBufferPointer(start: start, count: pointer.pointee.key_len).bytes)
    }
}

extension Message {
    /// Lends all headers to `body` in the sender's order, in one pass. A header without a value has no bytes.
    package func forEachHeader<Failure: Error>(
        _ body: (borrowing HeaderName, RawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        // Detached and freed after the pass, so that the next message's headers reuse the same cached memory. Kept
        // until the message is released, 1,000 messages × 11 headers cost a third more. librdkafka can parse them
        // again.
        var headers: OpaquePointer?
        guard unsafe rd_kafka_message_detach_headers(pointer, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        defer { if let headers = unsafe headers { unsafe rd_kafka_headers_destroy(headers) } }
        var index = 0
        var name: UnsafePointer<CChar>?
        var value: UnsafeRawPointer?
        var count = 0
        while unsafe rd_kafka_header_get_all(headers, index, &name, &value, &count) == RD_KAFKA_RESP_ERR_NO_ERROR,
            let text = unsafe name
        {
            let bytes = unsafe UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : count)
            try body(unsafe HeaderName(text), unsafe bytes.bytes)
            index += 1
        }
    }
}

/// The name of a header, borrowed during a call of `forEachHeader`'s closure.
@safe package struct HeaderName: ~Copyable {
    private let pointer: UnsafePointer<CChar>

    init(_ pointer: UnsafePointer<CChar>) { unsafe self.pointer = pointer }

    package static func == (name: borrowing HeaderName, other: StaticString) -> Bool {
        unsafe strcmp(name.pointer, UnsafeRawPointer(other.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
    }

    /// The first byte; 0 for an empty name.
    package var first: UInt8 { UInt8(bitPattern: unsafe pointer.pointee) }

    package var text: String { unsafe String(cString: pointer) }
}
