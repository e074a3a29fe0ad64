import Crypto
import FoundationEssentials
import Postgres

/// A name that whoever knows it may use: 256 random bits. What is stored is only its SHA-256.
struct Capability: Sendable {
    /// 43 characters of base64url.
    let text: String

    private static let length = 43

    /// A new one, from the system's generator (getrandom(2)).
    init() {
        var generator = SystemRandomNumberGenerator()
        text = base64URL((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    /// One that somebody sent; `nil` when it cannot be one.
    init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.length, text.utf8.allSatisfy(isBase64URL) else { return nil }
        self.text = String(text)
    }

    /// What it is found by.
    var key: Bytea { Bytea(Array(SHA256.hash(data: Array(text.utf8)))) }
}

/// Unpadded base64url (RFC 7515 §2).
func base64URL(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString().utf8.compactMap { byte -> UInt8? in
        switch byte {
        case UInt8(ascii: "+"): UInt8(ascii: "-")
        case UInt8(ascii: "/"): UInt8(ascii: "_")
        case UInt8(ascii: "="): nil
        default: byte
        }
    }
    return String(decoding: text, as: UTF8.self)
}

private func isBase64URL(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
    default: false
    }
}
