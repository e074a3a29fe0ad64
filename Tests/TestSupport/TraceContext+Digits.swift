package import Essentials

extension TraceContext {
    /// The trace's id, as collectors have it.
    package var traceID: String { digits(traceHigh) + digits(traceLow) }
}

/// A span's id, as collectors have it.
package func digits(_ value: UInt64) -> String {
    var bytes: [UInt8] = []
    appendHex(value, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}
