import FoundationEssentials

/// A key that lets an integration in: shown once, stored as its SHA-256 hash.
package enum IntegrationKey {
    /// What a key begins with, so that one in a log or a repository is recognised.
    package static let prefix = "fpk_"

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
