import Glibc

/// Many live devices as plain sockets of one thread: each asks for the stream, and then only listens.
///
/// Plain sockets, since an HTTP client's own cost of 10,000 streams would be measured along.
struct BenchSockets: ~Copyable {
    private let port: UInt16
    private var descriptors: [Int32] = []
    /// Those that have not got what is waited for, and by descriptor the end of what they got: a text may arrive in two
    /// pieces.
    private var waiting: [pollfd] = []
    private var tails: [Int32: [UInt8]] = [:]
    private var buffer = [UInt8](repeating: 0, count: 65_536)

    /// How many have asked and have no answer yet, at most.
    private static let openingMax = 64
    private static let silenceMaxMilliseconds: Int32 = 30_000

    init(port: Int) { self.port = UInt16(port) }

    deinit { for descriptor in descriptors { close(descriptor) } }

    /// Lets this process and those it starts open so many files.
    static func allowFiles(_ count: Int) throws {
        var limit = rlimit()
        unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let wanted = rlim_t(count)
        if limit.rlim_cur >= wanted { return }
        limit.rlim_cur = wanted
        limit.rlim_max = max(limit.rlim_max, wanted)
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw BenchPlace.Missing(description: "\(count) open files are not allowed (see ulimit -n)")
        }
    }

    /// Opens devices, up to `count`, that each send their request; returns when all answers have come as far as `text`.
    mutating func open(_ count: Int, request: (Int) -> [UInt8], until text: String) throws {
        let needle = Array(text.utf8)
        while descriptors.count < count || !waiting.isEmpty {
            while descriptors.count < count, waiting.count < Self.openingMax {
                let descriptor = try send(request(descriptors.count))
                descriptors.append(descriptor)
                waiting.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            }
            try receive(needle)
        }
    }

    /// Waits until every device has got the text.
    mutating func waitForAll(_ text: String) throws {
        let needle = Array(text.utf8)
        waiting = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        while !waiting.isEmpty { try receive(needle) }
    }

    /// Sends a request on a connection of its own and does not look at the answer.
    ///
    /// - Returns: The connection, to be closed.
    func send(_ request: [UInt8]) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failed("socket") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        // It fits into the socket's buffer, so it is sent whole.
        let sent = unsafe request.withUnsafeBytes { unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, 0) }
        guard isConnected, sent == request.count else {
            close(descriptor)
            throw Self.failed("connect")
        }
        return descriptor
    }

    /// Reads what is there; those that have got the text wait no more.
    private mutating func receive(_ needle: [UInt8]) throws {
        guard unsafe poll(&waiting, nfds_t(waiting.count), Self.silenceMaxMilliseconds) > 0 else {
            throw Self.failed("poll")
        }
        var rest: [pollfd] = []
        rest.reserveCapacity(waiting.count)
        for device in waiting {
            if device.revents == 0 {
                rest.append(device)
                continue
            }
            let length = unsafe recv(device.fd, &buffer, buffer.count, 0)
            guard length > 0 else { throw BenchPlace.Missing(description: "the gateway has closed a device's stream") }
            let bytes = (tails.removeValue(forKey: device.fd) ?? []) + buffer[..<length]
            if Self.contains(bytes, needle) { continue }
            tails[device.fd] = Array(bytes.suffix(needle.count - 1))
            rest.append(device)
        }
        waiting = rest
    }

    private static func contains(_ bytes: [UInt8], _ needle: [UInt8]) -> Bool {
        guard bytes.count >= needle.count else { return false }
        return (0...bytes.count - needle.count).contains { start in
            bytes[start] == needle[0] && bytes[start..<start + needle.count].elementsEqual(needle)
        }
    }

    private static func failed(_ call: String) -> BenchPlace.Missing {
        BenchPlace.Missing(description: "\(call) fails or is silent for too long (errno \(errno))")
    }
}
