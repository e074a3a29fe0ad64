/// A place in a trace, as the header `traceparent` tells it. Source: W3C Trace Context, §3.2.
///
/// It is a value: new ids come in as numbers, from whoever has a source of them.
package struct TraceContext: Hashable, Sendable {
    package let traceHigh: UInt64
    package let traceLow: UInt64
    /// Of the span that what carries it belongs to.
    package let spanID: UInt64
    package let flags: UInt8

    /// How many characters its text has, always.
    package static let textLength = 55

    /// - Returns: `nil` when an id is all zero, which W3C has for none.
    package init?(traceHigh: UInt64, traceLow: UInt64, spanID: UInt64, flags: UInt8) {
        guard traceHigh | traceLow != 0, spanID != 0 else { return nil }
        (self.traceHigh, self.traceLow, self.spanID, self.flags) = (traceHigh, traceLow, spanID, flags)
    }

    /// Version 00: `00-<32 hex>-<16 hex>-<2 hex>`, lower case, neither id all zero. Source: W3C Trace Context, §3.2.2.
    package init?(ascii bytes: RawSpan) {
        guard bytes.byteCount == Self.textLength,
            bytes.number(0..<2) == 0, bytes.isHyphen(at: 2), bytes.isHyphen(at: 35), bytes.isHyphen(at: 52),
            let high = bytes.number(3..<19), let low = bytes.number(19..<35), let span = bytes.number(36..<52),
            let flags = bytes.number(53..<55)
        else { return nil }
        self.init(traceHigh: high, traceLow: low, spanID: span, flags: UInt8(flags))
    }

    /// The same of a text.
    package init?(_ text: String) {
        unsafe self.init(ascii: text.utf8Span.span.bytes)
    }

    /// The next span of the trace. A number that is no span's id leaves it where it is.
    package func child(_ spanID: UInt64) -> TraceContext {
        TraceContext(traceHigh: traceHigh, traceLow: traceLow, spanID: spanID, flags: flags) ?? self
    }

    /// Whether who began the trace records it. Source: W3C Trace Context, §3.2.2.5.1.
    package var isSampled: Bool { flags & 1 == 1 }

    /// As the header has it.
    package var text: String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.textLength)
        appendText(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends what ``text`` is, as ASCII.
    package func appendText(to bytes: inout [UInt8]) {
        bytes += "00-".utf8
        appendHex(traceHigh, to: &bytes)
        appendHex(traceLow, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        appendHex(spanID, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        appendHex(UInt64(flags), digitCount: 2, to: &bytes)
    }

    /// The context of what the current task does: calls to other systems carry it.
    @TaskLocal package static var current: TraceContext?
}

/// Appends the last digits of a number, in lower case.
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

    /// What at most 16 hexadecimal digits in lower case spell.
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
