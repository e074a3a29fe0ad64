package import Essentials

/// A complete response of any status, including 3xx: redirects are not followed.
package struct Response: Sendable {
    package let status: Int
    package let headers: Headers
    package let body: [UInt8]
    /// The earliest expiry in the server's certificate chain; `nil` without TLS, on a reused connection, or if
    /// `Client.Configuration.readsCertificates` is false.
    package let certificateEnd: Timestamp?

    /// - Parameter head: The status line and the headers as received.
    package init(status: Int, head: [UInt8], body: [UInt8], certificateEnd: Timestamp? = nil) {
        self.status = status
        headers = Headers(bytes: head)
        self.body = body
        self.certificateEnd = certificateEnd
    }

    /// Maximum size of the head (status line and headers).
    package static let headBytesMax = 64 * 1024
}

/// A response's headers, stored as received and parsed on access.
package struct Headers: Sendable, Sequence {
    /// Lines that end with CR LF; the first is the status line.
    let bytes: [UInt8]

    /// The first value of `name`, compared case-insensitively, without surrounding white space.
    package subscript(name: String) -> String? {
        var rest = bytes[...]
        while let (lineName, value) = Headers.nextLine(of: &rest) {
            if let lineName, isSame(lineName, name) { return String(decoding: value, as: UTF8.self) }
        }
        return nil
    }

    package func makeIterator() -> AnyIterator<(name: String, value: String)> {
        var rest = bytes[...]
        return AnyIterator {
            while let (name, value) = Headers.nextLine(of: &rest) {
                guard let name else { continue }
                return (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
            }
            return nil
        }
    }

    /// Removes one line from `rest`; `name` is `nil` for the status line and the final empty line.
    private static func nextLine(
        of rest: inout ArraySlice<UInt8>
    ) -> (name: ArraySlice<UInt8>?, value: ArraySlice<UInt8>)? {
        guard !rest.isEmpty else { return nil }
        let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
        let line = rest[..<end]
        rest = end < rest.endIndex ? rest[(end + 1)...] : []
        guard !line.starts(with: "HTTP/".utf8), let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            return (nil, line)
        }
        var value = line[(colon + 1)...]
        while let byte = value.first, isSpace(byte) { value.removeFirst() }
        while let byte = value.last, isSpace(byte) { value.removeLast() }
        return (line[..<colon], value)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
}

/// Compares ASCII case-insensitively.
private func isSame(_ bytes: ArraySlice<UInt8>, _ name: String) -> Bool {
    bytes.count == name.utf8.count
        && zip(bytes, name.utf8).allSatisfy { left, right in
            left == right || (left | 0x20 == right | 0x20 && (left | 0x20) >= 0x61 && (left | 0x20) <= 0x7A)
        }
}
