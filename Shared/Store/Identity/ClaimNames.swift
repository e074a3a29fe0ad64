import FoundationEssentials

/// The names of a token's claims, without their values, which could identify a person.
package enum ClaimNames {
    private static let countMax = 64
    private static let lengthMax = 64

    private struct Names: Decodable {
        struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init?(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        let all: [String]

        init(from decoder: any Decoder) throws {
            all = try decoder.container(keyedBy: Name.self).allKeys.map(\.stringValue)
        }
    }

    /// Returns a token's claim names, sorted: printable ASCII, at most 64 bytes each and 64 in number.
    ///
    /// Does not verify the signature: the caller has done so.
    package static func of(_ token: String) -> [String] {
        let parts = Array(token.utf8).split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let names = TokenParts.decode(Names.self, parts[1]) else { return [] }
        let words = names.all.filter { name in
            (1...lengthMax).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        }
        return Array(words.sorted().prefix(countMax))
    }
}
