/// The trace context of a span, as in the header `traceparent`. Source: W3C Trace Context, §3.2.
///
/// A pure value: callers supply new ids as numbers.
package struct TraceContext: Hashable, Sendable {
    package let traceHigh: UInt64
    package let traceLow: UInt64
    /// The id of the span that the context belongs to.
    package let spanID: UInt64
    package let flags: UInt8

    /// The length of the text, which is fixed.
    package static let textLength = 55

    /// - Returns: `nil` if an id is all zero, which W3C defines as invalid.
    package init?(traceHigh: UInt64, traceLow: UInt64, spanID: UInt64, flags: UInt8) {
        guard traceHigh | traceLow != 0, spanID != 0 else { return nil }
        (self.traceHigh, self.traceLow, self.spanID, self.flags) = (traceHigh, traceLow, spanID, flags)
    }

    /// Parses version 00: `00-<32 hex>-<16 hex>-<2 hex>`, lower case, no id all zero. Source: W3C Trace Context,
    /// §3.2.2.
    package init?(ascii bytes: RawSpan) {
        guard bytes.byteCount == Self.textLength,
            bytes.number(0..<2) == 0, bytes.isHyphen(at: 2), bytes.isHyphen(at: 35), bytes.isHyphen(at: 52),
            let high = bytes.number(3..<19), let low = bytes.number(19..<35), let span = bytes.number(36..<52),
            let flags = bytes.number(53..<55)
        else { return nil }
        self.init(traceHigh: high, traceLow: low, spanID: span, flags: UInt8(flags))
    }

    /// Parses the header's text.
    package init?(_ text: String) {
        unsafe self.init(ascii: text.utf8Span.span.bytes)
    }

    /// Returns the context of a child span; `self` if `spanID` is 0, which is invalid.
    package func child(_ spanID: UInt64) -> TraceContext {
        TraceContext(traceHigh: traceHigh, traceLow: traceLow, spanID: spanID, flags: flags) ?? self
    }

    /// Whether the root of the trace decided to record it. Source: W3C Trace Context, §3.2.2.5.1.
    package var isSampled: Bool { flags & 1 == 1 }

    /// The header's value.
    package var text: String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.textLength)
        appendText(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends ``text`` as ASCII.
    package func appendText(to bytes: inout [UInt8]) {
        bytes += "00-".utf8
        appendHex(traceHigh, to: &bytes)
        appendHex(traceLow, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        appendHex(spanID, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        appendHex(UInt64(flags), digitCount: 2, to: &bytes)
    }

    /// The context of the current task, which is propagated to calls of other systems.
    @TaskLocal package static var current: TraceContext?
}

/// Appends the last hexadecimal digits of a number, in lower case.
package func appendHex(_ value: UInt64, digitCount: UInt64 = 16, to bytes: inout [UInt8]) {
    for index in (0..<digitCount).reversed() {
        let digit = UInt8(truncatingIfNeeded: value >> (4 * index) & 15)
        bytes.append(digit < 10 ? digit + 48 : digit + 87)
    }
}

extension RawSpan {
    fileprivate func isHyphen(at index: Int) -> Bool {
        unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self) == UInt8(ascii: "-")
    }

    /// Parses at most 16 lower-case hexadecimal digits.
    fileprivate func number(_ range: Range<Int>) -> UInt64? {
        var value: UInt64 = 0
        for index in range {
            let byte = unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self)
            switch byte {
            case 48...57: value = value << 4 | UInt64(byte - 48)
            case 97...102: value = value << 4 | UInt64(byte - 87)
            default: return nil
            }
        }
        return value
    }
}
