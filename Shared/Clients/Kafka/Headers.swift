internal import CKafka

/// The headers of a message to send; owns an `rd_kafka_headers_t` until the producer takes ownership.
@safe package struct Headers: ~Copyable {
    let pointer: OpaquePointer

    /// - Parameter capacity: The expected number of headers; more can be added.
    package init(capacity: Int = 12) { unsafe pointer = rd_kafka_headers_new(capacity) }

    deinit { unsafe rd_kafka_headers_destroy(pointer) }

    package mutating func add(_ name: StaticString, _ value: RawSpan) {
        unsafe value.withUnsafeBytes {
            let start = unsafe UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
            _ = unsafe rd_kafka_header_add(pointer, start, name.utf8CodeUnitCount, $0.baseAddress ?? empty, $0.count)
        }
    }

    package mutating func add(_ name: StaticString, _ value: String) {
        unsafe add(name, value.utf8Span.span.bytes)
    }

    package mutating func add(_ name: String, _ value: RawSpan) {
        unsafe value.withUnsafeBytes {
            _ = unsafe rd_kafka_header_add(pointer, name, -1, $0.baseAddress ?? empty, $0.count)
        }
    }

    consuming func relinquish() { discard self }
}

/// The address of an empty value: librdkafka interprets nil as null, which is different.
var empty: UnsafeRawPointer { unsafe UnsafeRawPointer(("" as StaticString).utf8Start) }
