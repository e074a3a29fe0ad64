import Crypto
import Essentials
package import FoundationEssentials

/// Where and for whom a browser takes messages: what `PushSubscription.toJSON()` gives a page, checked.
///
/// Source: W3C Push API, `PushSubscription`; RFC 8291, 3.1 and 3.2.
package struct PushSubscription: Sendable {
    /// What is wrong with a subscription, as a sentence for whoever sent it. Nothing of its secret is in it.
    package struct Malformed: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The address that the browser's push service gave it: whoever knows it may send.
    package let endpoint: URL
    /// The origin of the address, for which a server says who it is: `https://push.example.net`.
    package let origin: String
    let publicKey: P256.KeyAgreement.PublicKey
    /// Shared with the browser alone, so that nobody else's messages are taken for ours.
    let secret: [UInt8]

    /// The longest address.
    package static let endpointLengthMax = 2_048
    private static let secretByteCount = 16

    /// - Parameters:
    ///   - endpoint: `https` only.
    ///   - p256dh: The browser's public key, an uncompressed point of P-256, in base64url.
    ///   - auth: 16 bytes in base64url.
    package init(endpoint: String, p256dh: String, auth: String) throws(Malformed) {
        guard endpoint.utf8.count <= Self.endpointLengthMax, let url = URL(string: endpoint), url.scheme == "https",
            let host = url.host(), !host.isEmpty, url.user() == nil
        else {
            throw Malformed(
                description: "'endpoint' is to be an https address of at most \(Self.endpointLengthMax) bytes")
        }
        guard let point = Base64URL.bytes(p256dh.utf8),
            let publicKey = try? P256.KeyAgreement.PublicKey(x963Representation: point)
        else { throw Malformed(description: "'p256dh' is to be an uncompressed point of P-256 in base64url") }
        guard let secret = Base64URL.bytes(auth.utf8), secret.count == Self.secretByteCount else {
            throw Malformed(description: "'auth' is to be \(Self.secretByteCount) bytes in base64url")
        }
        self.endpoint = url
        origin = "https://" + host.lowercased() + (url.port.map { ":\($0)" } ?? "")
        self.publicKey = publicKey
        self.secret = secret
    }
}
