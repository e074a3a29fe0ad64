import Crypto
import Essentials
import FoundationEssentials
import Postgres

/// A bearer secret of 256 random bits. Only its SHA-256 hash is stored.
struct Capability: Sendable {
    /// 43 characters of base64url.
    let text: String

    private static let length = 43

    /// Creates a random one with the system's generator (getrandom(2)).
    init() { text = Base64URL.random(byteCount: 32) }

    /// - Parameter bytes: Exactly 32.
    init(_ bytes: [UInt8]) { text = Base64URL.text(bytes) }

    /// Parses a received one; `nil` if it is malformed.
    init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.length, text.utf8.allSatisfy(Base64URL.contains) else { return nil }
        self.text = String(text)
    }

    /// Its SHA-256 hash, by which it is looked up.
    var key: Bytea { Bytea(Array(SHA256.hash(data: Array(text.utf8)))) }
}
