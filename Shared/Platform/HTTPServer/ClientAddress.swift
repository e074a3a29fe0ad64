import FoundationEssentials
import HTTPTypes
package import Hummingbird
package import NIOCore

/// Says where requests come from: for bounds, and for the audit log.
package struct ClientAddress: Sendable {
    /// Proxies between clients and the service, each of which adds to `X-Forwarded-For` who called it.
    package let proxyCount: Int

    /// - Parameter proxyCount: 0: what the header says is anybody's to write, and does not count.
    package init(proxyCount: Int = 0) { self.proxyCount = proxyCount }

    /// A network address as text: the peer's, or what the outermost of the proxies says.
    package func text(_ request: Request, _ context: EdgeContext) -> String {
        text(peer: context.peer, forwarded: request.headers.filter { Self.isForwarded($0.name.rawName) }.map(\.value))
    }

    /// The same of a request to open a WebSocket.
    package func text(_ request: WebSocketRoute.Request) -> String {
        text(
            peer: request.peer, forwarded: request.headers.filter { Self.isForwarded($0.name) }.map(\.value))
    }

    func text(peer: String?, forwarded: [String]) -> String {
        let hops = forwarded.joined(separator: ",").split(separator: ",")
        // A request that came by fewer proxies than it should has no address that could be believed.
        let client = proxyCount > 0 && hops.count >= proxyCount ? Self.address(hops[hops.count - proxyCount]) : nil
        return client ?? peer.flatMap(Self.address) ?? "unknown"
    }

    /// The usual text of an address; an IPv4 address as such, also where a socket of both kinds has it as IPv6.
    private static func address(_ text: some StringProtocol) -> String? {
        let plain = String(text.prefix(lengthMax).filter { $0 != " " })
        guard let address = (try? SocketAddress(ipAddress: plain, port: 0))?.ipAddress else { return nil }
        let mapped = "::ffff:"
        return address.hasPrefix(mapped) && address.contains(".") ? String(address.dropFirst(mapped.count)) : address
    }

    /// What is counted as one client: who has one IPv6 address has a /64 of them (RFC 6177).
    ///
    /// - Parameter client: As ``text(_:_:)`` gives it.
    package static func network(of client: String) -> String {
        let halves = client.components(separatedBy: "::").map { $0.split(separator: ":") }
        guard client.contains(":"), halves.count <= 2, let left = halves.first else { return client }
        let right = halves.count == 2 ? halves[1] : []
        let zeros = Array(repeating: Substring("0"), count: max(0, 8 - left.count - right.count))
        return (left + zeros + right).prefix(4).joined(separator: ":") + "::/64"
    }

    /// The network of a connection's peer.
    static func network(ofPeer peer: String) -> String { network(of: address(peer) ?? "unknown") }

    private static let lengthMax = 64

    private static func isForwarded(_ name: String) -> Bool { name.lowercased() == "x-forwarded-for" }
}

/// The context of a request from a stranger, which knows its connection.
package struct EdgeContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// The connection it came by.
    package let channel: any Channel

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
    }

    var peer: String? { channel.remoteAddress?.ipAddress }
}
