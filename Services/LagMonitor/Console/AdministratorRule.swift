import Model

/// Who is an administrator, of those who have logged in at the operators' provider.
enum AdministratorRule {
    /// One way to be one.
    enum Entry: Equatable, Sendable {
        /// By an address that somebody vouches for.
        case address(EmailAddress)
        /// By what a claim of the ID token is, or has among its texts.
        case claim(name: String, value: String)
    }

    /// Reads `ana@example.com`, or `groups=fieldpost-admins`.
    ///
    /// - Returns: `nil` for what is neither.
    static func entry(_ text: String) -> Entry? {
        let parts = text.split(separator: "=", maxSplits: 1)
        if parts.count == 2 { return .claim(name: String(parts[0]), value: String(parts[1])) }
        guard !text.contains("=") else { return nil }
        return EmailAddress(text).map { .address($0) }
    }

    /// - Parameters:
    ///   - email: Vouched for, as the provider's token has it.
    ///   - claims: What the token says under a name.
    static func isAdministrator(email: String, claims: (String) -> [String], among entries: [Entry]) -> Bool {
        // What is no address that Fieldpost takes is nobody's, though a claim may name its person.
        let found = EmailAddress(email)
        return entries.contains { entry in
            switch entry {
            case .address(let address): found == address
            case .claim(let name, let value): claims(name).contains { $0.utf8.elementsEqual(value.utf8) }
            }
        }
    }
}
