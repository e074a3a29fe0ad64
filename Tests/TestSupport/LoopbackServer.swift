import Foundation
import Synchronization

/// An HTTP/1.1 server of raw sockets, so that a test controls each connection.
package final class LoopbackServer: Sendable {
    package struct Request: Sendable {
        package let head: String
        package let body: [UInt8]

        package var path: String { String(head.split(separator: " ")[1]) }
        package var method: String { String(head.prefix { $0 != " " }) }

        package func header(_ name: String) -> String? {
            for line in head.split(separator: "\r\n").dropFirst() where line.lowercased().hasPrefix(name + ":") {
                return line.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            }
            return nil
        }
    }

    package enum Action: Sendable {
        case answer(status: Int = 200, headers: [String] = [], body: [UInt8] = [])
        /// Close the connection without a response.
        case hangUp
        /// Keep the connection open without a response.
        case silence
        /// A chunked body of `count` pieces, then the end, or silence if it stays open.
        case stream(piece: [UInt8], count: Int, staysOpen: Bool = false)
    }

    private struct State {
        var connectionCount = 0
        var openCount = 0
        var requests: [Request] = []
    }

    package let port: Int
    private let listener: Int32
    private let state = Mutex(State())
    private let bytesStreamed = Atomic<Int>(0)
    private let handle: @Sendable (Request) -> Action

    package var url: String { "http://127.0.0.1:\(port)" }
    package var connectionCount: Int { state.withLock(\.connectionCount) }
    package var openCount: Int { state.withLock(\.openCount) }
    package var requests: [Request] { state.withLock(\.requests) }
    package var streamedByteCount: Int { bytesStreamed.load(ordering: .relaxed) }

    package init(_ handle: @escaping @Sendable (Request) -> Action) {
        self.handle = handle
        (listener, port) = LoopbackServer.listen()
        Foundation.Thread.detachNewThread { [self] in accept() }
    }

    package func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Returns a port of this machine without a listener.
    package static func freePort() -> Int {
        let (socket, port) = listen()
        close(socket)
        return port
    }

    private static func listen() -> (Int32, Int) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        unsafe withUnsafeMutablePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                let isBound = unsafe bind(listener, $0, length) == 0
                precondition(isBound && Foundation.listen(listener, 512) == 0)
                unsafe getsockname(listener, $0, &length)
            }
        }
        return (listener, Int(UInt16(bigEndian: address.sin_port)))
    }

    private func accept() {
        while true {
            let connection = Foundation.accept(listener, nil, nil)
            guard connection >= 0 else { break }
            state.withLock {
                $0.connectionCount += 1
                $0.openCount += 1
            }
            Foundation.Thread.detachNewThread { [self] in
                serve(connection)
                close(connection)
                state.withLock { $0.openCount -= 1 }
            }
        }
        close(listener)
    }

    private func serve(_ connection: Int32) {
        var input: [UInt8] = []
        while let request = readRequest(connection, &input) {
            state.withLock { $0.requests.append(request) }
            switch handle(request) {
            case .answer(let status, let headers, let body):
                var head = "HTTP/1.1 \(status) Some Reason\r\nContent-Length: \(body.count)\r\n"
                for header in headers { head += header + "\r\n" }
                guard write(connection, Array((head + "\r\n").utf8) + body) else { return }
            case .hangUp:
                return
            case .silence:
                waitForEnd(of: connection)
                return
            case .stream(let piece, let count, let staysOpen):
                guard write(connection, Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)) else {
                    return
                }
                let chunk = Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8)
                for _ in 0..<count {
                    guard write(connection, chunk) else { return }
                    bytesStreamed.add(piece.count, ordering: .relaxed)
                }
                if staysOpen { return waitForEnd(of: connection) }
                guard write(connection, Array("0\r\n\r\n".utf8)) else { return }
            }
        }
    }

    private func readRequest(_ connection: Int32, _ input: inout [UInt8]) -> Request? {
        while true {
            if let end = input.firstRange(of: Array("\r\n\r\n".utf8)) {
                let head = String(decoding: input[..<end.lowerBound], as: UTF8.self)
                let count = Request(head: head, body: []).header("content-length").flatMap { Int($0) } ?? 0
                if input.count >= end.upperBound + count {
                    let body = Array(input[end.upperBound..<(end.upperBound + count)])
                    input.removeFirst(end.upperBound + count)
                    return Request(head: head, body: body)
                }
            }
            guard receive(connection, &input) else { return nil }
        }
    }

    private func waitForEnd(of connection: Int32) {
        var ignored: [UInt8] = []
        while receive(connection, &ignored) {}
    }

    private func receive(_ connection: Int32, _ input: inout [UInt8]) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(connection, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return false }
        input.append(contentsOf: bytes[..<count])
        return true
    }

    private func write(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
