import Crypto
import Essentials
import FoundationEssentials
import Postgres

/// A name that whoever knows it may use: 256 random bits. What is stored is only its SHA-256.
struct Capability: Sendable {
    /// 43 characters of base64url.
    let text: String

    private static let length = 43

    /// A new one, from the system's generator (getrandom(2)).
    init() { text = Base64URL.random(byteCount: 32) }

    /// - Parameter bytes: 32 of them.
    init(_ bytes: [UInt8]) { text = Base64URL.text(bytes) }

    /// One that somebody sent; `nil` when it cannot be one.
    init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.length, text.utf8.allSatisfy(Base64URL.contains) else { return nil }
        self.text = String(text)
    }

    /// What it is found by.
    var key: Bytea { Bytea(Array(SHA256.hash(data: Array(text.utf8)))) }
}
