package import Crypto
package import Essentials
import FoundationEssentials

/// Identifies the sender to push services (VAPID), with the key to which browsers bind their subscriptions.
///
/// Source: RFC 8292.
package struct PushSender: Sendable {
    private let key: P256.Signing.PrivateKey
    private let contact: String

    /// Lifetime of a token. RFC 8292, 2 allows at most a day.
    package static let lifetime = Duration.seconds(12 * 3_600)

    /// - Parameters:
    ///   - key: Created once for an environment; another key invalidates all subscriptions.
    ///   - contact: The contact for a push service's operator: `mailto:` or `https:`.
    package init(key: P256.Signing.PrivateKey, contact: String) {
        self.key = key
        self.contact = contact
    }

    /// The public key in base64url, which a page passes as `applicationServerKey`.
    package var applicationServerKey: String { Base64URL.text(key.publicKey.x963Representation) }

    /// Returns the `Authorization` header of a request.
    ///
    /// - Parameter origin: The push service's ``PushSubscription/origin``.
    package func authorization(for origin: String, at now: Timestamp) throws -> String {
        struct Claims: Encodable {
            let aud: String
            let exp: Int64
            let sub: String
        }
        let expiry = now.millisecondsSinceEpoch / 1_000 + Self.lifetime.components.seconds
        let token = try SignedToken.text(
            SignedToken.Header(alg: "ES256", typ: "JWT"), Claims(aud: origin, exp: expiry, sub: contact)
        ) { try key.signature(for: $0).rawRepresentation }
        return "vapid t=\(token), k=\(applicationServerKey)"
    }
}
