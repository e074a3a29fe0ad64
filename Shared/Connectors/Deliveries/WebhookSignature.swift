import Crypto
package import Essentials
import FoundationEssentials

/// Signs webhooks, so that whoever receives one knows whose it is, that nobody has changed it, and that it is not an
/// old one sent again. The headers are those of Standard Webhooks, for which receivers have libraries.
///
/// Source: Standard Webhooks 1.0.0, "Webhook metadata" and "Signature scheme".
package struct WebhookSignature: Sendable {
    private let key: SymmetricKey

    private static let prefix = "whsec_"
    /// The bytes that a secret may have.
    package static let secretBytes = 24...64

    /// - Parameter secret: `whsec_` and 24 to 64 bytes in base64, as receivers are given it.
    /// - Returns: `nil` for another text.
    package init?(secret: String) {
        guard secret.hasPrefix(Self.prefix),
            let bytes = Data(base64Encoded: String(secret.dropFirst(Self.prefix.count))),
            Self.secretBytes.contains(bytes.count)
        else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// A new secret, of 32 random bytes.
    package static func newSecret() -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return prefix + Data(bytes).base64EncodedString()
    }

    /// The headers of a request.
    ///
    /// - Parameters:
    ///   - id: The same for each attempt, so that a receiver can tell a repeat (`webhook-id`, an idempotency key). It
    ///     has no full stop, which separates what is signed.
    ///   - time: Of this attempt: receivers refuse what is some minutes off.
    ///   - body: As it is sent.
    package func headers(
        id: String, at time: Timestamp, body: [UInt8]
    ) -> [(name: String, value: String)] {
        precondition(!id.contains("."), "an id of a webhook has no full stop")
        let seconds = "\(time.millisecondsSinceEpoch / 1_000)"
        let code = HMAC<SHA256>.authenticationCode(for: Array("\(id).\(seconds).".utf8) + body, using: key)
        return [
            ("webhook-id", id), ("webhook-timestamp", seconds),
            ("webhook-signature", "v1," + Data(code).base64EncodedString()),
        ]
    }
}
