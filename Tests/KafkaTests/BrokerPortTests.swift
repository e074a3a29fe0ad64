import Glibc
import TestSupport
import Testing

/// The port of an emulated broker that restarts.
@Suite(.ownThreads) struct BrokerPortTests {
    /// A request before the topics exist would create a topic with another number of partitions.
    @Test func clientsConnectOnlyAfterTheTopicsExist() async throws {
        try await withMockCluster(topics: ["t": 3]) { cluster in
            let port = try #require(cluster.address.split(separator: ":").last.flatMap { in_port_t($0) })
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
            defer { close(client) }
            try cluster.restartEmpty {
                try #require(Self.connect(client, port) == -1 && errno == EINPROGRESS)
                #expect(!Self.isConnected(client, within: 300))
            }
            // The system repeats the attempt, after a second at first.
            #expect(Self.isConnected(client, within: 60_000))
        }
    }

    private static func isConnected(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return unsafe poll(&request, 1, milliseconds) == 1 && request.revents == Int16(POLLOUT)
    }

    private static func connect(_ descriptor: Int32, _ port: in_port_t) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
