import Crypto
package import Essentials
import FoundationEssentials

/// Signs webhooks, so that a receiver can verify the sender and the content, and reject replays. The headers are those
/// of Standard Webhooks, for which libraries exist.
///
/// Source: Standard Webhooks 1.0.0, "Webhook metadata" and "Signature scheme".
package struct WebhookSignature: Sendable {
    private let key: SymmetricKey

    private static let prefix = "whsec_"
    /// Allowed number of bytes of a secret.
    package static let secretBytes = 24...64

    /// - Parameter secret: `whsec_` and 24 to 64 bytes in base64, as receivers get it.
    /// - Returns: `nil` for an invalid secret.
    package init?(secret: String) {
        guard secret.hasPrefix(Self.prefix),
            let bytes = Data(base64Encoded: String(secret.dropFirst(Self.prefix.count))),
            Self.secretBytes.contains(bytes.count)
        else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// Returns a new secret of 32 random bytes.
    package static func newSecret() -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        return prefix + Data(bytes).base64EncodedString()
    }

    /// Returns the headers of a request.
    ///
    /// - Parameters:
    ///   - id: The same for each attempt, so that a receiver can detect a repetition (`webhook-id`, an idempotency
    ///     key). It contains no full stop, which separates the signed parts.
    ///   - time: The time of this attempt. Receivers reject an error of some minutes.
    ///   - body: The body as sent.
    package func headers(
        id: String, at time: Timestamp, body: [UInt8]
    ) -> [(name: String, value: String)] {
        precondition(!id.contains("."), "a webhook id must not contain a full stop")
        let seconds = "\(time.millisecondsSinceEpoch / 1_000)"
        let code = HMAC<SHA256>.authenticationCode(for: Array("\(id).\(seconds).".utf8) + body, using: key)
        return [
            ("webhook-id", id), ("webhook-timestamp", seconds),
            ("webhook-signature", "v1," + Data(code).base64EncodedString()),
        ]
    }
}
