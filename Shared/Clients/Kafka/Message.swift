internal import CKafka
internal import Glibc

/// One message that a consumer received; frees librdkafka's memory when it goes.
///
/// Key, value and headers are lent without copying. Not `Sendable`: what another thread needs is copied out. It may
/// outlive its consumer.
@safe package final class Message {
    private let pointer: UnsafeMutablePointer<rd_kafka_message_t>
    /// Released after the message: librdkafka needs its client to free it.
    private let client: Client
    let tracker: PartitionTracker
    let slot: Int

    package let offset: Int64
    /// When it was written, in milliseconds since 1970 (the producer's or the broker's clock, as the topic says);
    /// -1 when the broker does not tell.
    package let timestamp: Int64
    /// The offset after the message before. Below `offset`: messages between the two were removed before they were
    /// delivered, or the topic is compacted or has transactions, which leave gaps. Above it: the offsets went
    /// backwards, as of a broker that was started empty.
    ///
    /// For the first message after an assignment or a seek it is what `Consumer.begin` was told, else `offset`.
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
        let delivery = tracker.deliver(offset: offset, timestamp: timestamp)
        slot = delivery.slot
        self.expectedOffset = expectedOffset ?? delivery.expected
    }

    deinit { unsafe rd_kafka_message_destroy(pointer) }

    /// Offsets before it are missing, or went backwards.
    package var skippedBefore: Bool { expectedOffset != offset }

    package var topic: String { tracker.partition.topic }
    package var partition: Int32 { tracker.partition.partition }
    package var topicPartition: TopicPartition { tracker.partition }

    /// The value is null: what the key stands for was deleted. An empty value is not a tombstone.
    package var isTombstone: Bool { unsafe pointer.pointee.payload == nil }

    /// Lends the value's bytes.
    ///
    /// - Returns: `nil`, without calling `body`, for a tombstone.
    package func withValue<Success, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success? {
        guard let start = unsafe pointer.pointee.payload else { return nil }
        return try body(unsafe UnsafeRawBufferPointer(start: start, count: pointer.pointee.len).bytes)
    }

    /// Lends the key's bytes.
    ///
    /// - Returns: `nil`, without calling `body`, when the message has no key.
    package func withKey<Success, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success? {
        guard let start = unsafe pointer.pointee.key else { return nil }
        return try body(unsafe UnsafeRawBufferPointer(start: start, count: pointer.pointee.key_len).bytes)
    }

    /// A copy of the value; `nil` for a tombstone.
    package var value: [UInt8]? { withValue { $0.copied } }
    /// A copy of the key.
    package var key: [UInt8]? { withKey { $0.copied } }
}

extension Message {
    /// Lends every header in the sender's order, in one pass. A header without a value has no bytes.
    package func forEachHeader<Failure: Error>(
        _ body: (borrowing HeaderName, RawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        // Detached and freed after the pass: the next message's headers take the same, still warm memory. Kept until
        // the message goes, 1,000 messages × 11 headers cost a third more. librdkafka can parse them again.
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

    /// A copy of the last header of that name; `nil` when there is none.
    package func header(_ name: StaticString) -> [UInt8]? {
        var found: [UInt8]?
        forEachHeader { if $0 == name { found = $1.copied } }
        return found
    }

    /// The last header of that name as text; bytes that are not UTF-8 are replaced by U+FFFD.
    package func headerText(_ name: StaticString) -> String? {
        header(name).map { String(decoding: $0, as: UTF8.self) }
    }
}

/// The name of a header, lent while `forEachHeader` stands at it.
@safe package struct HeaderName: ~Copyable {
    private let pointer: UnsafePointer<CChar>

    init(_ pointer: UnsafePointer<CChar>) { unsafe self.pointer = pointer }

    package static func == (name: borrowing HeaderName, other: StaticString) -> Bool {
        unsafe strcmp(name.pointer, UnsafeRawPointer(other.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
    }

    /// The first byte; 0 of an empty name.
    package var first: UInt8 { UInt8(bitPattern: unsafe pointer.pointee) }

    package var text: String { unsafe String(cString: pointer) }
}

extension RawSpan {
    /// The bytes, copied out of what was lent.
    package var copied: [UInt8] { unsafe withUnsafeBytes { unsafe Array($0) } }
}
