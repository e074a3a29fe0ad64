/// The client side of a WebSocket as bytes (RFC 6455), for test devices that may violate the protocol.
package enum WebSocketBytes {
    /// The request that opens one.
    ///
    /// - Parameter headers: Further header fields, each with its line end.
    package static func handshake(_ path: String, headers: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\(headers)\r\n"
    }

    /// Takes the head of the server's response from the front; `nil` while it is not whole.
    package static func takeHead(_ bytes: inout [UInt8]) -> (status: Int, text: String)? {
        let mark = Array("\r\n\r\n".utf8)
        let ends = bytes.indices.dropLast(mark.count - 1).lazy.map { $0 + mark.count }
        guard let end = ends.first(where: { bytes[..<$0].hasSuffix(mark) }) else { return nil }
        let text = String(decoding: bytes[..<end], as: UTF8.self)
        bytes.removeFirst(end)
        return (Int(text.split(separator: " ").dropFirst().first ?? "") ?? -1, text)
    }

    /// A frame of at most 65,535 bytes.
    ///
    /// - Parameters:
    ///   - first: Flags and opcode, as they go out: `0x81` is a whole text.
    ///   - isMasked: What clients send must be.
    package static func frame(_ first: UInt8, _ data: [UInt8], isMasked: Bool = true) -> [UInt8] {
        let mask: UInt8 = isMasked ? 0x80 : 0
        let length =
            data.count < 126
            ? [mask | UInt8(data.count)] : [mask | 126, UInt8(data.count >> 8), UInt8(data.count & 255)]
        guard isMasked else { return [first] + length + data }
        let key: [UInt8] = [1, 2, 3, 4]
        return [first] + length + key + data.enumerated().map { $0.element ^ key[$0.offset % 4] }
    }

    /// Takes the server's next frame from the front; `nil` while it is not whole.
    package static func takeFrame(_ bytes: inout [UInt8]) -> (opcode: UInt8, data: [UInt8])? {
        guard bytes.count >= 2 else { return nil }
        var (length, start) = (Int(bytes[1] & 0x7F), 2)
        if length == 126 {
            guard bytes.count >= 4 else { return nil }
            (length, start) = (Int(bytes[2]) << 8 | Int(bytes[3]), 4)
        }
        guard bytes.count >= start + length else { return nil }
        defer { bytes.removeFirst(start + length) }
        return (bytes[0] & 0x0F, Array(bytes[start..<start + length]))
    }
}

extension ArraySlice<UInt8> {
    fileprivate func hasSuffix(_ mark: [UInt8]) -> Bool { suffix(mark.count).elementsEqual(mark) }
}
