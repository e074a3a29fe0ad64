import HTTPTypes
import Hummingbird
import NIOCore

/// Where a request comes from.
struct ClientAddress: Sendable, Equatable {
    /// A network address as text; empty when it is not known.
    let text: String

    /// - Parameters:
    ///   - peer: Who opened the connection.
    ///   - forwarded: The values of `X-Forwarded-For`.
    ///   - proxies: Whose word is taken: from the right, the first address that is none of theirs is the client's.
    init(peer: String?, forwarded: [String], proxies: Set<String>) {
        var address = peer ?? ""
        let hops = forwarded.flatMap { $0.split(separator: ",") }.map { hop in
            String(hop.drop { $0 == " " }.prefix { $0 != " " })
        }
        for hop in hops.reversed() {
            guard proxies.contains(address), hop.utf8.count <= 45,
                hop.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { break }
            address = hop
        }
        text = address
    }
}

/// A request's context that knows its connection.
struct OnboardingContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    let peer: String?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        peer = source.channel.remoteAddress?.ipAddress
    }
}

extension HTTPFields {
    var forwarded: [String] {
        filter { $0.name.canonicalName == "x-forwarded-for" }.map(\.value)
    }
}
