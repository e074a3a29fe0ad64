import Crypto
import Essentials
package import FoundationEssentials

/// A validated browser subscription, as `PushSubscription.toJSON()` returns it to a page.
///
/// Source: W3C Push API, `PushSubscription`; RFC 8291, 3.1 and 3.2.
package struct PushSubscription: Sendable {
    /// The reason why a subscription is invalid, as a sentence for the client. It contains nothing of the secret.
    package struct FormatError: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The URL that the browser's push service assigned. Possession of it allows sending.
    package let endpoint: URL
    /// The origin of the URL, for which a server identifies itself: `https://push.example.net`.
    package let origin: String
    let publicKey: P256.KeyAgreement.PublicKey
    /// A secret shared with the browser alone, which authenticates messages.
    let secret: [UInt8]

    /// Limit on the bytes of the URL.
    package static let endpointLengthMax = 2_048
    private static let secretByteCount = 16

    /// - Parameters:
    ///   - endpoint: `https` only.
    ///   - p256dh: The browser's public key, an uncompressed point of P-256, in base64url.
    ///   - auth: 16 bytes in base64url.
    package init(endpoint: String, p256dh: String, auth: String) throws(FormatError) {
        guard endpoint.utf8.count <= Self.endpointLengthMax, let url = URL(string: endpoint), url.scheme == "https",
            let host = url.host(), !host.isEmpty, url.user() == nil
        else {
            throw FormatError(
                description: "'endpoint' must be an https URL of at most \(Self.endpointLengthMax) bytes")
        }
        guard let point = Base64URL.bytes(p256dh.utf8),
            let publicKey = try? P256.KeyAgreement.PublicKey(x963Representation: point)
        else { throw FormatError(description: "'p256dh' must be an uncompressed point of P-256 in base64url") }
        guard let secret = Base64URL.bytes(auth.utf8), secret.count == Self.secretByteCount else {
            throw FormatError(description: "'auth' must be \(Self.secretByteCount) bytes in base64url")
        }
        self.endpoint = url
        origin = "https://" + host.lowercased() + (url.port.map { ":\($0)" } ?? "")
        self.publicKey = publicKey
        self.secret = secret
    }
}
