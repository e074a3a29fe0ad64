import Logging
import Metrics
import NIOCore
import Synchronization

/// The open connections of a server, counted by client network.
///
/// Behind a proxy, whose address is common to all clients, there must be no limit.
final class NetworkConnections: Sendable {
    private struct State {
        var counts: [String: Int] = [:]
        /// The time of the last log line about rejected connections.
        var loggedAt: ContinuousClock.Instant?
    }

    /// The maximum per network; 0: no limit.
    let countMax: Int
    private let name: String
    private let logger: Logger
    private let refused: Counter
    private let state = Mutex(State())

    /// Minimum time between two log lines about rejected connections.
    private static let logInterval = Duration.seconds(60)

    init(countMax: Int, name: String, logger: Logger) {
        self.countMax = countMax
        self.name = name
        self.logger = logger
        refused = Counter(label: "http.connections.refused", dimensions: [("server", name)])
    }

    /// - Returns: False if the network is at its limit.
    func open(_ network: String) -> Bool {
        let (isOpen, isLogged) = state.withLock { state in
            guard state.counts[network, default: 0] >= countMax else {
                state.counts[network, default: 0] += 1
                return (true, false)
            }
            let isDue = state.loggedAt.map { ContinuousClock.now - $0 >= Self.logInterval } ?? true
            if isDue { state.loggedAt = .now }
            return (false, isDue)
        }
        if isOpen { return true }
        refused.increment()
        if isLogged {
            logger.warning(
                "connection limit of a network reached",
                metadata: ["server": "\(name)", "network": "\(network)", "limit": "\(countMax)"])
        }
        return false
    }

    func close(_ network: String) {
        state.withLock { state in
            let count = state.counts[network, default: 0] - 1
            state.counts[network] = count > 0 ? count : nil
        }
    }
}

/// Counts a connection while it is open, and closes it immediately if its network is at the limit.
final class NetworkLimit: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let counts: NetworkConnections
    /// The network; `nil` while the connection is not counted.
    private var network: String?

    init(_ counts: NetworkConnections) { self.counts = counts }

    func channelActive(context: ChannelHandlerContext) {
        let peer = context.remoteAddress?.ipAddress.map { ClientAddress.network(ofPeer: $0) } ?? "unknown"
        if counts.open(peer) { network = peer } else { context.close(promise: nil) }
        context.fireChannelActive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        if let network { counts.close(network) }
        network = nil
    }
}
