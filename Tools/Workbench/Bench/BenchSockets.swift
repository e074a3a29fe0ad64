import Glibc
import LocalCluster

/// Many live devices as plain sockets of one thread: each requests the stream, and then only receives.
///
/// An HTTP client with 10,000 streams would distort the measurement.
struct BenchSockets: ~Copyable {
    private let port: UInt16
    private var descriptors: [Int32] = []
    /// Sockets that have not received the expected text, and the end of what each received: the text may arrive in two
    /// pieces.
    private var waiting: [pollfd] = []
    private var tails: [Int32: [UInt8]] = [:]
    private var buffer = [UInt8](repeating: 0, count: 65_536)

    /// Maximum number of requests without a response.
    private static let pendingMax = 64
    private static let timeoutMilliseconds: Int32 = 30_000

    init(port: Int) { self.port = UInt16(port) }

    deinit { for descriptor in descriptors { close(descriptor) } }

    /// Opens sockets up to `count`, each with one request; returns when every response has contained `text`.
    mutating func open(_ count: Int, request: [UInt8], until text: String) throws {
        let needle = Array(text.utf8)
        while descriptors.count < count || !waiting.isEmpty {
            while descriptors.count < count, waiting.count < Self.pendingMax {
                let descriptor = try send(request)
                descriptors.append(descriptor)
                waiting.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            }
            try receive(needle)
        }
    }

    /// Waits until every device has received the text.
    ///
    /// - Parameter excluded: A text that no device may receive meanwhile; it may be in the same piece.
    mutating func waitForAll(_ text: String, unless excluded: String? = nil) throws {
        let (needle, excluded) = (Array(text.utf8), excluded.map { Array($0.utf8) })
        waiting = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while !waiting.isEmpty { try receive(needle, unless: excluded) }
    }

    /// Sends a request on a new connection, and does not read the response.
    ///
    /// - Returns: The connection, which the caller closes.
    func send(_ request: [UInt8]) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure(of: "socket") }
        var isSent = false
        defer { if !isSent { close(descriptor) } }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { throw Self.failure(of: "connect") }
        // The request fits into the socket's buffer, so one call sends all of it.
        let sent = unsafe request.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == request.count else { throw Self.failure(of: "send") }
        isSent = true
        return descriptor
    }

    /// Reads what has arrived; sockets that have received the text are no longer waited for.
    private mutating func receive(_ needle: [UInt8], unless excluded: [UInt8]? = nil) throws {
        guard unsafe poll(&waiting, nfds_t(waiting.count), Self.timeoutMilliseconds) > 0 else {
            throw Self.failure(of: "poll")
        }
        var rest: [pollfd] = []
        rest.reserveCapacity(waiting.count)
        for device in waiting {
            if device.revents == 0 {
                rest.append(device)
                continue
            }
            let length = unsafe recv(device.fd, &buffer, buffer.count, 0)
            guard length > 0 else { throw ClusterFailure("the gateway closed a device's stream") }
            let bytes = (tails.removeValue(forKey: device.fd) ?? []) + buffer[..<length]
            if let excluded, bytes.contains(excluded) {
                throw ClusterFailure("a device received \(String(decoding: excluded, as: UTF8.self))")
            }
            if bytes.contains(needle) { continue }
            tails[device.fd] = Array(bytes.suffix(needle.count - 1))
            rest.append(device)
        }
        waiting = rest
    }

    private static func failure(of call: String) -> ClusterFailure {
        ClusterFailure("\(call) failed or timed out (errno \(errno))")
    }
}
