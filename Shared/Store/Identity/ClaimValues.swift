import FoundationEssentials

/// The values of one claim of a token whose signature the caller has verified.
package enum ClaimValues {
    private static let countMax = 1_000

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

    /// Returns a claim's strings, at most 1,000; empty if it is neither a string nor an array of strings.
    package static func of(_ token: String, _ name: String) -> [String] {
        let parts = Array(token.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let claims = TokenParts.decode(Claims.self, parts[1]) else { return [] }
        let key = Claims.Name(stringValue: name)
        if let one = try? claims.container.decode(String.self, forKey: key) { return [one] }
        return Array(((try? claims.container.decode([String].self, forKey: key)) ?? []).prefix(countMax))
    }
}
