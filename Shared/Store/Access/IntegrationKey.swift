import Essentials
import FoundationEssentials

/// A key that lets an integration in: shown once, stored as its SHA-256 hash.
package enum IntegrationKey {
    /// What a key begins with, so that one in a log or a repository is recognised.
    package static let prefix = "fpk_"

    /// Whether a text has the shape of a key; anything else is refused without a look at what keys there are.
    package static func isShaped(_ text: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.count == prefix.utf8.count + 43
            && text.utf8.dropFirst(prefix.utf8.count).allSatisfy(Base64URL.contains)
    }

    /// A new key: 256 random bits after the prefix, in base64url.
    package static func make() -> String { prefix + Base64URL.random(byteCount: 32) }
}
