import HTTPTypes

/// The W3C trace context of a request.
enum Traceparent {
    static func read(_ headers: HTTPFields) -> String? {
        headers.first { $0.name.canonicalName == "traceparent" }.flatMap { isValid($0.value) ? $0.value : nil }
    }

    /// Version 00: `00-<32 hex>-<16 hex>-<2 hex>`, lower case, neither id all zero. Source: W3C Trace Context §3.2.2.
    static func isValid(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        let isHexadecimal = { (byte: UInt8) in
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
        }
        return parts.map(\.count) == [2, 32, 16, 2] && parts[0].elementsEqual("00".utf8)
            && parts.allSatisfy { $0.allSatisfy(isHexadecimal) }
            && parts[1...2].allSatisfy { part in part.contains { $0 != UInt8(ascii: "0") } }
    }
}
