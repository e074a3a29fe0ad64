internal import Essentials
internal import Glibc

/// A protocol violation that prevents a response from being read.
package struct RawProblem: Error, CustomStringConvertible {
    package let description: String
}

/// A response as it was received.
package struct RawResponse: Sendable {
    package let status: Int
    /// Header fields with names in lower case.
    package let fields: [(name: String, value: String)]
    package var body: [UInt8] = []

    package func values(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// Whether it is the last response on its connection.
    package var isLast: Bool { values("connection").contains { $0.lowercased() == "close" } }
}

/// A blocking connection to a local port that parses responses strictly by RFC 9112: bytes after the end of a response
/// must be the next response.
package struct RawConnection: ~Copyable {
    private let descriptor: Int32
    private var bytes: [UInt8] = []
    private var isAtEnd = false

    /// Maximum time without a byte.
    private static let silenceMaxMilliseconds: Int32 = 60_000

    package init(port: Int, from source: String? = nil) throws {
        let opened = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if let source { _ = unsafe Self.with(source, 0) { unsafe bind(opened, $0, $1) } }
        let status = unsafe Self.with("127.0.0.1", port) { unsafe connect(opened, $0, $1) }
        guard status == 0 else {
            _ = Glibc.close(opened)
            throw RawProblem(description: "no connection to port \(port)")
        }
        // Set last: `deinit` runs if `init` throws after it, and would close a descriptor of another thread.
        descriptor = opened
    }

    deinit { _ = Glibc.close(descriptor) }

    private static func with(
        _ address: String, _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = in_port_t(UInt16(port).bigEndian)
        name.sin_addr.s_addr = unsafe inet_addr(address)
        return unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// - Returns: False if the peer accepts no more bytes.
    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// - Returns: False if the peer accepts no more bytes.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Reads the response to a request.
    ///
    /// - Throws: `RawProblem` if the bytes are not a response.
    package mutating func response(to method: String) throws -> RawResponse {
        let status = try line()
        let parts = status.split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].utf8.count == 3,
            let code = Int(parts[1])
        else { throw RawProblem(description: "this is no status line: \(status.prefix(80).debugDescription)") }
        var response = RawResponse(status: code, fields: try fields())
        if method == "HEAD" || code < 200 || code == 204 || code == 304 { return response }
        let (lengths, codings) = (response.values("content-length"), response.values("transfer-encoding"))
        switch (lengths.count, codings.count) {
        case (1, 0):
            guard let length = Int(lengths[0]), length >= 0 else {
                throw RawProblem(description: "no length: \(lengths[0])")
            }
            response.body = try take(length)
        case (0, 1) where codings == ["chunked"]: response.body = try chunks()
        case (0, 0) where response.isLast:
            while fill() {}
            response.body = try take(bytes.count)
        default: throw RawProblem(description: "the end of the body is unclear: \(lengths), \(codings)")
        }
        return response
    }

    /// Waits until the peer closes the connection.
    ///
    /// - Returns: Unsolicited bytes received before the close.
    package mutating func rest() -> String {
        while fill() {}
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Waits until the peer closes the connection.
    ///
    /// - Parameter text: Text that is sent every 100 milliseconds until the close.
    /// - Returns: False if the connection is still open after `patienceMax`.
    package mutating func waitForEnd(sending text: String = "") -> Bool {
        let deadline = ContinuousClock.now + patienceMax
        while !isAtEnd, ContinuousClock.now < deadline {
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            if unsafe poll(&ready, 1, 100) > 0 {
                _ = fill()
            } else if !send(text) {
                return true
            }
        }
        return isAtEnd
    }

    /// Reads the content of the next chunk.
    package mutating func chunk() throws -> [UInt8] {
        let size = try line()
        guard !size.isEmpty, let count = Int(size, radix: 16) else {
            throw RawProblem(description: "no chunk: \(size.prefix(80).debugDescription)")
        }
        let chunk = try take(count)
        guard try line().isEmpty else { throw RawProblem(description: "a chunk longer than its size") }
        return chunk
    }

    /// Reads a head without its body.
    package mutating func head() throws -> RawResponse {
        let status = try line()
        let parts = status.split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, let code = Int(parts[1]) else {
            throw RawProblem(description: "this is no status line: \(status.prefix(80).debugDescription)")
        }
        return RawResponse(status: code, fields: try fields())
    }

    private mutating func chunks() throws -> [UInt8] {
        var body: [UInt8] = []
        while true {
            let chunk = try chunk()
            if chunk.isEmpty { return body }
            body += chunk
        }
    }

    private mutating func fields() throws -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        while true {
            let line = try line()
            if line.isEmpty { return fields }
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(" ") else {
                throw RawProblem(description: "this is no field: \(line.prefix(80).debugDescription)")
            }
            fields.append((parts[0].lowercased(), String(parts[1].drop { $0 == " " })))
        }
    }

    /// Reads a line and removes its CR LF.
    private mutating func line() throws -> String {
        var start = 0
        while true {
            if let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
                guard end > 0, bytes[end - 1] == UInt8(ascii: "\r") else {
                    throw RawProblem(description: "a line ends without CR")
                }
                let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
                bytes.removeFirst(end + 1)
                return line
            }
            start = bytes.count
            guard fill() else { throw RawProblem(description: "the connection ended, with \(bytes.count) bytes left") }
        }
    }

    /// Reads exactly `count` bytes.
    package mutating func take(_ count: Int) throws -> [UInt8] {
        while bytes.count < count {
            guard fill() else { throw RawProblem(description: "a body ended \(count - bytes.count) bytes too early") }
        }
        defer { bytes.removeFirst(count) }
        return Array(bytes[..<count])
    }

    private mutating func fill() -> Bool {
        guard !isAtEnd else { return false }
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&ready, 1, Self.silenceMaxMilliseconds) > 0 else { return false }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        isAtEnd = count <= 0
        if count > 0 { bytes += chunk[..<count] }
        return count > 0
    }
}
