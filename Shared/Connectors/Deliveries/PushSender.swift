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
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let expiry = now.millisecondsSinceEpoch / 1_000 + Self.lifetime.components.seconds
        let claims = try encoder.encode(Claims(aud: origin, exp: expiry, sub: contact))
        let head = Base64URL.text(#"{"alg":"ES256","typ":"JWT"}"#.utf8)
        let signed = head + "." + Base64URL.text(claims)
        let signature = try key.signature(for: Array(signed.utf8)).rawRepresentation
        return "vapid t=\(signed).\(Base64URL.text(signature)), k=\(applicationServerKey)"
    }
}
