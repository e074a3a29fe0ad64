import FoundationEssentials

/// The claims of a token whose signature the caller has verified.
package struct VerifiedClaims {
    private static let nameCountMax = 64
    private static let nameLengthMax = 64
    private static let valueCountMax = 1_000

    private struct Claims: Decodable {
        struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        let container: KeyedDecodingContainer<Name>

        init(from decoder: any Decoder) throws { container = try decoder.container(keyedBy: Name.self) }
    }

    /// `nil` if the token is malformed.
    private let claims: Claims?

    package init(_ token: String) {
        let parts = Array(token.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        claims = parts.count == 3 ? TokenParts.decode(Claims.self, parts[1]) : nil
    }

    /// The names without their values, which could identify a person; sorted: printable ASCII, at most 64 bytes each
    /// and 64 in number.
    package var names: [String] {
        let names = (claims?.container.allKeys ?? []).map(\.stringValue).filter { name in
            (1...Self.nameLengthMax).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
        return Array(names.sorted().prefix(Self.nameCountMax))
    }

    /// Returns a claim's strings, at most 1,000; empty if it is neither a string nor an array of strings.
    package func values(of name: String) -> [String] {
        guard let container = claims?.container else { return [] }
        let key = Claims.Name(stringValue: name)
        if let one = try? container.decode(String.self, forKey: key) { return [one] }
        return Array(((try? container.decode([String].self, forKey: key)) ?? []).prefix(Self.valueCountMax))
    }
}
