import FoundationEssentials
import HTTPTypes
package import Hummingbird
package import NIOCore

/// Determines the client address of requests, for rate limits and the audit log.
package struct ClientAddress: Sendable {
    /// The number of trusted proxies in front of the service, each of which appends its peer to `X-Forwarded-For`.
    package let proxyCount: Int

    /// - Parameter proxyCount: 0 ignores the header, which any client can set.
    package init(proxyCount: Int = 0) { self.proxyCount = proxyCount }

    /// Returns a network address as text: the peer's, or the one that the outermost trusted proxy reports.
    package func text(_ request: Request, _ context: EdgeContext) -> String {
        text(peer: context.peer, forwarded: request.headers.filter { Self.isForwarded($0.name.rawName) }.map(\.value))
    }

    /// Returns the client address of a request to open a WebSocket.
    package func text(_ request: WebSocketRoute.Request) -> String {
        text(
            peer: request.peer, forwarded: request.headers.filter { Self.isForwarded($0.name) }.map(\.value))
    }

    func text(peer: String?, forwarded: [String]) -> String {
        let hops = forwarded.joined(separator: ",").split(separator: ",")
        // A request that passed fewer proxies than configured has no trustworthy forwarded address.
        let client = proxyCount > 0 && hops.count >= proxyCount ? Self.address(hops[hops.count - proxyCount]) : nil
        return client ?? peer.flatMap(Self.address) ?? "unknown"
    }

    /// Normalises an address; an IPv4-mapped IPv6 address becomes IPv4.
    private static func address(_ text: some StringProtocol) -> String? {
        let plain = String(text.prefix(lengthMax).filter { $0 != " " })
        guard let address = (try? SocketAddress(ipAddress: plain, port: 0))?.ipAddress else { return nil }
        let mapped = "::ffff:"
        return address.hasPrefix(mapped) && address.contains(".") ? String(address.dropFirst(mapped.count)) : address
    }

    /// Returns the network that counts as one client: an IPv6 address belongs to a /64 of one subscriber (RFC 6177).
    ///
    /// - Parameter client: The result of ``text(_:_:)``.
    package static func network(of client: String) -> String {
        let halves = client.components(separatedBy: "::").map { $0.split(separator: ":") }
        guard client.contains(":"), halves.count <= 2, let left = halves.first else { return client }
        let right = halves.count == 2 ? halves[1] : []
        let zeros = Array(repeating: Substring("0"), count: max(0, 8 - left.count - right.count))
        return (left + zeros + right).prefix(4).joined(separator: ":") + "::/64"
    }

    /// Returns the network of a connection's peer.
    static func network(ofPeer peer: String) -> String { network(of: address(peer) ?? "unknown") }

    private static let lengthMax = 64

    private static func isForwarded(_ name: String) -> Bool { name.lowercased() == "x-forwarded-for" }
}

/// The context of a request, with its connection.
package struct EdgeContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// The request's connection.
    package let channel: any Channel

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    var peer: String? { channel.remoteAddress?.ipAddress }
}
