import LocalCluster

/// TCP proxies in front of the brokers of a cluster, one per broker, which freeze, delay or cut single brokers.
///
/// Clients that bootstrap from `address` reach every broker through its proxy only: in the brokers' responses
/// (Metadata, FindCoordinator) each `127.0.0.1` and broker's port becomes the proxy's port. Other bytes pass unchanged.
/// Brokers are numbered from 1, in the order of the cluster's bootstrap list, as the mock cluster numbers them.
package final class BrokerProxies: Sendable {
    private let proxies: [(core: BrokerProxy, listener: LocalListener)]
    private let ports: PortMap
    /// `host:port` of all proxies, separated by commas.
    package let address: String

    /// - Parameter brokers: `127.0.0.1:port` of all brokers, separated by commas.
    package init(inFrontOf brokers: String) throws {
        let ports = PortMap()
        self.ports = ports
        proxies = try Self.ports(of: brokers).map { port in
            let core = BrokerProxy(port: port, ports: ports)
            let listener = try LocalListener { core.serve($0) }
            ports.add(port, listener.address.split(separator: ":").last.flatMap { UInt16($0) } ?? 0)
            return (core, listener)
        }
        address = proxies.map(\.listener.address).joined(separator: ",")
    }

    deinit { for proxy in proxies { proxy.core.change { $0.isCut = true } } }

    /// Freezes a broker until `resume`, like a stopped process: connections stay open and new ones are accepted, but
    /// no bytes pass. Bytes sent meanwhile are delivered on `resume`.
    package func freeze(_ broker: Int) { self[broker].change { $0.isFrozen = true } }
    package func resume(_ broker: Int) { self[broker].change { $0.isFrozen = false } }

    /// Closes all connections, and every new one immediately, until `restore`.
    package func cut(_ broker: Int) { self[broker].change { $0.isCut = true } }
    package func restore(_ broker: Int) { self[broker].change { $0.isCut = false } }

    /// Delays each response of a broker; requests in flight are delayed concurrently.
    package func setRoundTrip(_ delay: Duration, of broker: Int) {
        self[broker].change { $0.delay = delay / .seconds(1) }
    }

    /// Redirects the proxy to the same broker of another cluster and closes all connections: simulates the loss of the
    /// broker's data.
    ///
    /// - Parameter brokers: The bootstrap list of that cluster, whose brokers get the proxies' addresses.
    package func replace(_ broker: Int, byThatOf brokers: String) throws {
        let others = try Self.ports(of: brokers)
        for (port, proxy) in zip(others, try Self.ports(of: address)) { ports.add(port, proxy) }
        self[broker].connect(to: others[broker - 1])
    }

    private static func ports(of brokers: String) throws -> [UInt16] {
        try brokers.split(separator: ",").map { broker in
            guard let port = broker.split(separator: ":").last.flatMap({ UInt16($0) }) else {
                throw MockCluster.Failure(reason: "no port in \(broker)")
            }
            return port
        }
    }

    private subscript(broker: Int) -> BrokerProxy { proxies[broker - 1].core }
}

/// Runs a body with a cluster like `withMockCluster`, with a proxy in front of each broker.
package func withProxiedCluster(
    topics: [String: Int], brokers: Int32 = 3, _ body: @Sendable (MockCluster, BrokerProxies) throws -> Void
) async throws {
    try await withMockCluster(topics: topics, brokers: brokers) { cluster in
        let proxies = try BrokerProxies(inFrontOf: cluster.address)
        try withExtendedLifetime(proxies) { try body(cluster, proxies) }
    }
}
