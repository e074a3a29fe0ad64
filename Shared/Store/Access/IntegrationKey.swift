import Essentials

/// An integration's API key: displayed once, stored as its SHA-256 hash.
package enum IntegrationKey {
    /// The prefix that makes keys recognisable in logs and repositories.
    package static let prefix = "fpk_"

    /// Whether a text has the format of a key; other texts are rejected without a database query.
    package static func isShaped(_ text: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.count == prefix.utf8.count + 43
            && text.utf8.dropFirst(prefix.utf8.count).allSatisfy(Base64URL.contains)
    }

    /// Returns a new key: the prefix and 256 random bits in base64url.
    package static func make() -> String { prefix + Base64URL.random(byteCount: 32) }
}
