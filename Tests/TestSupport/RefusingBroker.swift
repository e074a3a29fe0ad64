import Foundation

/// A broker that speaks as much of Kafka's protocol as it takes to refuse a password: ApiVersions, SaslHandshake and
/// SaslAuthenticate.
package final class RefusingBroker: Sendable {
    private let listener: Int32
    /// `host:port`
    package let address: String

    package init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = unsafe withUnsafeMutablePointer(to: &place) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard unsafe bind(listener, pointer, size) == 0, listen(listener, 16) == 0 else { return in_port_t(0) }
                unsafe getsockname(listener, pointer, &size)
                return unsafe UnsafeRawPointer(pointer).load(fromByteOffset: 2, as: in_port_t.self).bigEndian
            }
        }
        guard port != 0 else { throw MockCluster.Failure(reason: "no port") }
        self.listener = listener
        address = "127.0.0.1:\(port)"
        Thread.detachNewThread { [listener] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                Thread.detachNewThread { Self.serve(connection) }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func serve(_ connection: Int32) {
        defer { close(connection) }
        while let head = read(4, from: connection), let request = read(Int(number(head)), from: connection) {
            let (api, version) = (request[1], request[3])
            var answer = Array(request[4..<8])
            switch api {
            case 18 where version > 0: answer += [0, 35, 0, 0, 0, 0]  // UNSUPPORTED_VERSION: ask again with 0
            case 18: answer += [0, 0, 0, 0, 0, 3] + [(18, 0), (17, 1), (36, 0)].flatMap { [0, $0, 0, 0, 0, $1] }
            case 17: answer += [0, 0, 0, 0, 0, 1, 0, 5] + Array("PLAIN".utf8)
            default: answer += [0, 58, 0, 5] + Array("wrong".utf8) + [0, 0, 0, 0]  // SASL_AUTHENTICATION_FAILED
            }
            let size = answer.count
            let frame = [UInt8(0), 0, UInt8(size >> 8), UInt8(size & 255)] + answer
            guard unsafe send(connection, frame, frame.count, Int32(MSG_NOSIGNAL)) == frame.count else { return }
            if api == 36 { return }
        }
    }

    private static func number(_ bytes: [UInt8]) -> UInt32 { bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    /// - Returns: `nil` when the connection ends before, or more is announced than a request has.
    private static func read(_ count: Int, from connection: Int32) -> [UInt8]? {
        guard count < 10_000 else { return nil }
        var bytes: [UInt8] = []
        while bytes.count < count {
            var part = [UInt8](repeating: 0, count: count - bytes.count)
            let size = unsafe recv(connection, &part, part.count, 0)
            guard size > 0 else { return nil }
            bytes += part[..<size]
        }
        return bytes
    }
}
