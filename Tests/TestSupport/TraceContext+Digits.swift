package import Essentials

extension TraceContext {
    /// The trace id in the collectors' format.
    package var traceID: String { digits(traceHigh) + digits(traceLow) }
}

/// A span id in the collectors' format.
package func digits(_ value: UInt64) -> String {
    var bytes: [UInt8] = []
    appendHex(value, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}
