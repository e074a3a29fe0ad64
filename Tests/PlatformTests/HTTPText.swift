import Glibc
import TestSupport

@testable import HTTPServer
@testable import ServiceRuntime

/// Sends `request` to a local port and returns all output until the connection is closed.
///
/// Uses a separate thread, because the server under test needs Swift's.
func exchange(_ request: String, port: Int) async -> String {
    await onThread(named: "exchange") { exchangeBlocking(request, port: port) }
}

/// Sends `beginning`, then a byte every 100 ms without end.
func trickle(_ beginning: String, port: Int) async -> String {
    await onThread(named: "trickle") { exchangeBlocking(beginning, port: port, trickles: true) }
}

/// Sends `request`, and resets the connection when `condition` holds.
func hangUp(port: Int, after request: String, when condition: @escaping @Sendable () -> Bool) async {
    let descriptor = connected(port: port)
    let bytes = Array(request.utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    _ = await eventually { condition() }
    var now = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    close(descriptor)
}

/// Returns a socket connected to a local port; negative if there is no listener.
private func connected(port: Int) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port).bigEndian)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    let status = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    if status == 0 { return descriptor }
    close(descriptor)
    return -1
}

private func exchangeBlocking(_ request: String, port: Int, trickles: Bool = false) -> String {
    let descriptor = connected(port: port)
    guard descriptor >= 0 else { return "no connection" }
    defer { close(descriptor) }
    let bytes = Array(request.utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    var response: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if trickles, unsafe poll(&ready, 1, 100) == 0 {
            let byte: [UInt8] = [UInt8(ascii: "x")]
            guard unsafe send(descriptor, byte, 1, Int32(MSG_NOSIGNAL)) == 1 else {
                return String(decoding: response, as: UTF8.self)
            }
            continue
        }
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return String(decoding: response, as: UTF8.self) }
        response += chunk[..<count]
    }
}

/// Returns the response to a request without a body.
func get(_ path: String, port: Int, method: String = "GET") async -> String {
    await exchange("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", port: port)
}

/// Waits until `condition` holds; returns false after a timeout.
func eventually(_ condition: () async throws -> Bool) async rethrows -> Bool {
    let deadline = ContinuousClock.now + patienceMax
    while ContinuousClock.now < deadline {
        if try await condition() { return true }
        try? await Task.sleep(for: .milliseconds(5))
    }
    return false
}
