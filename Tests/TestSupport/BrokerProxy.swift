import Foundation
import Synchronization

/// The mapping between the ports of proxies and brokers.
final class PortMap: Sendable {
    private let ports = Mutex<[UInt16: UInt16]>([:])

    func add(_ broker: UInt16, _ proxy: UInt16) { ports.withLock { $0[broker] = proxy } }

    /// Replaces the brokers' ports in a response; only its beginning is searched, where brokers are listed.
    func replace(in frame: inout [UInt8]) {
        let ports = ports.withLock { $0 }
        var index = 0
        let end = min(frame.count - Self.host.count - 4, 4096)
        while index <= end {
            guard frame[index] == Self.host[0], frame[index...].starts(with: Self.host) else {
                index += 1
                continue
            }
            index += Self.host.count + 4
            let broker = UInt16(frame[index - 2]) << 8 | UInt16(frame[index - 1])
            guard frame[index - 4] == 0, frame[index - 3] == 0, let proxy = ports[broker] else { continue }
            (frame[index - 2], frame[index - 1]) = (UInt8(proxy >> 8), UInt8(proxy & 255))
        }
    }

    private static let host = Array("127.0.0.1".utf8)
}

/// The connections of one broker's proxy, and the faults to inject.
final class BrokerProxy: Sendable {
    struct Faults {
        var isFrozen = false
        var isCut = false
        /// The delay of each response in seconds.
        var delay: TimeInterval = 0
    }

    private struct State {
        /// The port of the broker.
        var port: UInt16
        var faults = Faults()
        /// Sockets of open connections.
        var sockets: Set<Int32> = []
    }

    private let ports: PortMap
    private let state: Mutex<State>
    /// Signalled on every change of faults, queues or ends.
    fileprivate let changed = NSCondition()

    init(port: UInt16, ports: PortMap) {
        self.ports = ports
        state = Mutex(State(port: port))
    }

    fileprivate var faults: Faults { state.withLock(\.faults) }

    func change(_ body: (inout Faults) -> Void) {
        state.withLock { state in
            body(&state.faults)
            if state.faults.isCut { Self.closeAll(state) }
        }
        signal()
    }

    /// Closes all connections; new ones connect to this port.
    func connect(to port: UInt16) {
        state.withLock { state in
            state.port = port
            Self.closeAll(state)
        }
        signal()
    }

    private static func closeAll(_ state: State) {
        for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    fileprivate func signal() {
        changed.lock()
        changed.broadcast()
        changed.unlock()
    }

    /// Serves one client until one side closes.
    func serve(_ client: Int32) {
        let broker = connect()
        guard broker >= 0 else { return }
        let isOpen = state.withLock { state in
            if !state.faults.isCut { state.sockets.formUnion([client, broker]) }
            return !state.faults.isCut
        }
        if isOpen {
            for socket in [client, broker] { sendAtOnce(socket) }
            let requests = Lane(from: client, to: broker, of: self)
            let answers = Lane(from: broker, to: client, of: self)
            let bodies: [@Sendable () -> Void] = [
                { requests.read { Lane.chunk(from: client) } },
                { [ports] in answers.read { Lane.frame(from: broker, ports) } },
                { requests.write { _ in 0 } },
                { answers.write { $0.delay } },
            ]
            runTogether(bodies)
            state.withLock { $0.sockets.subtract([client, broker]) }
        }
        close(broker)
    }

    private func runTogether(_ bodies: [@Sendable () -> Void]) {
        let group = DispatchGroup()
        for body in bodies {
            group.enter()
            Thread.detachNewThread {
                body()
                group.leave()
            }
        }
        group.wait()
    }

    private func connect() -> Int32 {
        let broker = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        place.sin_port = state.withLock(\.port).bigEndian
        let status = unsafe withUnsafePointer(to: &place) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Foundation.connect(broker, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        if status == 0 { return broker }
        close(broker)
        return -1
    }

    private func sendAtOnce(_ socket: Int32) {
        var on: Int32 = 1
        unsafe setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// One direction of a connection: one thread reads, another writes due bytes.
private final class Lane: Sendable {
    private struct State {
        var queue: [(bytes: [UInt8], readAt: Date)] = []
        var hasEnded = false
    }

    private let source: Int32
    private let sink: Int32
    private let proxy: BrokerProxy
    private let state = Mutex(State())

    init(from source: Int32, to sink: Int32, of proxy: BrokerProxy) {
        (self.source, self.sink, self.proxy) = (source, sink, proxy)
    }

    /// - Parameter next: `nil` when the source has closed.
    func read(_ next: () -> [UInt8]?) {
        while let bytes = next() {
            state.withLock { $0.queue.append((bytes, Date())) }
            proxy.signal()
        }
        state.withLock { $0.hasEnded = true }
        proxy.signal()
    }

    func write(delay: (BrokerProxy.Faults) -> TimeInterval) {
        while let bytes = takeDue(delay) {
            guard Lane.send(bytes, to: sink) else { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(sink, Int32(SHUT_RDWR))
    }

    private func takeDue(_ delay: (BrokerProxy.Faults) -> TimeInterval) -> [UInt8]? {
        proxy.changed.lock()
        defer { proxy.changed.unlock() }
        while true {
            let (first, hasEnded) = state.withLock { ($0.queue.first, $0.hasEnded) }
            let faults = proxy.faults
            if faults.isCut || first == nil && hasEnded { return nil }
            guard let first, !faults.isFrozen else {
                proxy.changed.wait()
                continue
            }
            let due = first.readAt + delay(faults)
            if due <= Date() { return state.withLock { $0.queue.removeFirst().bytes } }
            _ = proxy.changed.wait(until: due)
        }
    }

    static func chunk(from socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let size = unsafe recv(socket, &bytes, bytes.count, 0)
        return size > 0 ? Array(bytes[..<size]) : nil
    }

    /// Returns a complete response with the proxies' ports.
    static func frame(from socket: Int32, _ ports: PortMap) -> [UInt8]? {
        guard let head = exactly(4, from: socket) else { return nil }
        guard var body = exactly(head.reduce(0) { $0 << 8 | Int($1) }, from: socket) else { return nil }
        ports.replace(in: &body)
        return head + body
    }

    private static func exactly(_ count: Int, from socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let size = unsafe bytes.withUnsafeMutableBytes {
                unsafe recv(socket, $0.baseAddress?.advanced(by: filled), count - filled, 0)
            }
            guard size > 0 else { return nil }
            filled += size
        }
        return bytes
    }

    private static func send(_ bytes: [UInt8], to socket: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let size = unsafe bytes.withUnsafeBytes {
                unsafe Foundation.send(
                    socket, $0.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard size > 0 else { return false }
            sent += size
        }
        return true
    }
}
