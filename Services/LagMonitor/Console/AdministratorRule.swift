import Essentials

/// Who is an administrator, of those who have logged in at the operators' provider.
enum AdministratorRule {
    /// One way to be one.
    enum Entry: Equatable, Sendable {
        /// By an address that somebody vouches for; its ASCII letters lowered.
        case address(String)
        /// By what a claim of the ID token is, or has among its texts.
        case claim(name: String, value: String)
    }

    /// Reads `ana@example.com`, or `groups=fieldpost-admins`.
    ///
    /// - Returns: `nil` for what is neither.
    static func entry(_ text: String) -> Entry? {
        let parts = text.split(separator: "=", maxSplits: 1)
        if parts.count == 2 { return .claim(name: String(parts[0]), value: String(parts[1])) }
        let halves = text.split(separator: "@", omittingEmptySubsequences: false)
        guard halves.count == 2, halves.allSatisfy({ !$0.isEmpty }), !text.contains("=") else { return nil }
        return .address(lowered(text))
    }

    /// - Parameters:
    ///   - email: Vouched for, as the provider's token has it.
    ///   - claims: What the token says under a name.
    static func isAdministrator(email: String, claims: (String) -> [String], among entries: [Entry]) -> Bool {
        entries.contains { entry in
            switch entry {
            case .address(let address): lowered(email) == address
            case .claim(let name, let value): claims(name).contains { $0.utf8.elementsEqual(value.utf8) }
            }
        }
    }

    private static func lowered(_ text: String) -> String {
        String(decoding: text.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }
}
