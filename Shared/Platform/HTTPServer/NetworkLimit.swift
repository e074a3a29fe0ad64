import Logging
import Metrics
import NIOCore
import Synchronization

/// The open connections of a server, counted by the network they come from.
///
/// A proxy in front of a server has one address for all its clients: there must be no limit then.
final class NetworkConnections: Sendable {
    private struct State {
        var counts: [String: Int] = [:]
        /// When the last refusal was logged.
        var loggedAt: ContinuousClock.Instant?
    }

    /// 0: no limit.
    let countMax: Int
    private let name: String
    private let logger: Logger
    private let refused: Counter
    private let state = Mutex(State())

    /// Least time between two log lines about refused connections.
    private static let logInterval = Duration.seconds(60)

    init(countMax: Int, name: String, logger: Logger) {
        self.countMax = countMax
        self.name = name
        self.logger = logger
        refused = Counter(label: "http.connections.refused", dimensions: [("server", name)])
    }

    /// - Returns: False if the network has as many connections as it may have.
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
                "connections refused: too many from one network",
                metadata: ["server": "\(name)", "network": "\(network)", "connections": "\(countMax)"])
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

/// Counts a connection while it is open, and closes it at once if its network has too many.
final class NetworkLimit: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let counts: NetworkConnections
    /// `nil` while the connection is not counted.
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
