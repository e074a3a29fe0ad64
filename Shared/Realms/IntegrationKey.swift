import FoundationEssentials

/// A key that lets an integration in: shown once, stored as its SHA-256 hash.
package enum IntegrationKey {
    /// What a key begins with, so that one in a log or a repository is recognised.
    package static let prefix = "fpk_"

    /// Whether a text has the shape of a key; anything else is refused without a look at what keys there are.
    package static func isShaped(_ text: String) -> Bool {
        text.hasPrefix(prefix) && text.utf8.count == prefix.utf8.count + 43
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }

    /// A new key: 256 random bits after the prefix, in base64url.
    package static func make() -> String {
        var generator = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }
        return prefix
            + String(
                Data(bytes).base64EncodedString().compactMap { character -> Character? in
                    switch character {
                    case "+": "-"
                    case "/": "_"
                    case "=": nil
                    default: character
                    }
                })
    }
}
