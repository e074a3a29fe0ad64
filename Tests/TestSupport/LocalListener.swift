import Foundation

/// A port of 127.0.0.1 whose callers are each served on a thread of their own, until this value ends.
package final class LocalListener: Sendable {
    private let listener: Int32
    /// `host:port`
    package let address: String

    /// - Parameter serve: Is given a caller's socket, which is closed after it.
    package init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
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
                Thread.detachNewThread {
                    serve(connection)
                    close(connection)
                }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// An HTTP server that answers every request with these headers and nothing else.
    package static func answering(headers: [String]) throws -> LocalListener {
        let answer = Array((["HTTP/1.1 204 No Content"] + headers + ["", ""]).joined(separator: "\r\n").utf8)
        return try LocalListener { connection in
            var request: [UInt8] = []
            while !request.suffix(4).elementsEqual("\r\n\r\n".utf8) {
                var part = [UInt8](repeating: 0, count: 1_024)
                let size = unsafe recv(connection, &part, part.count, 0)
                guard size > 0 else { return }
                request += part[..<size]
            }
            _ = unsafe send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
        }
    }
}
