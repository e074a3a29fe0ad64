import Foundation
import LocalCluster

/// A port of 127.0.0.1 whose callers are each served on a thread of their own, until this value ends.
package final class LocalListener: Sendable {
    private let listener: Int32
    /// `host:port`
    package let address: String

    /// - Parameter serve: Is given a caller's socket, which is closed after it.
    package init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
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
        guard port != 0 else { throw ClusterFailure("no port of 127.0.0.1 can be had") }
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

    /// An HTTP server that reads every request to its end and answers a status and these headers.
    package static func answering(status: String = "204 No Content", headers: [String]) throws -> LocalListener {
        let head = (["HTTP/1.1 \(status)"] + headers + ["Content-Length: 0", "", ""]).joined(separator: "\r\n")
        let response = Array((status.hasPrefix("204") ? head.replacing("Content-Length: 0\r\n", with: "") : head).utf8)
        return try LocalListener { connection in
            while readRequest(connection) {
                guard unsafe send(connection, response, response.count, Int32(MSG_NOSIGNAL)) == response.count else {
                    return
                }
            }
        }
    }

    /// Reads a request, with a body of `Content-Length` bytes.
    ///
    /// - Returns: Whether the request is complete.
    private static func readRequest(_ connection: Int32) -> Bool {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            guard unsafe recv(connection, &byte, 1, 0) == 1, head.count < headBytesMax else { return false }
            head.append(byte)
        }
        let fields = String(decoding: head, as: UTF8.self).lowercased().split(whereSeparator: \.isNewline)
        let length = fields.first { $0.hasPrefix("content-length:") }.flatMap {
            Int($0.split(separator: ":")[1].trimmingCharacters(in: .whitespaces))
        }
        var left = length ?? 0
        var part = [UInt8](repeating: 0, count: 65_536)
        while left > 0 {
            let size = unsafe recv(connection, &part, min(part.count, left), 0)
            guard size > 0 else { return false }
            left -= size
        }
        return true
    }

    private static let headBytesMax = 65_536
}
