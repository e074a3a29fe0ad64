import Model

/// Decides which accounts of the operators' provider are administrators.
enum AdministratorRule {
    /// An entry of `console.administrators`.
    enum Entry: Equatable, Sendable {
        /// A verified e-mail address.
        case address(EmailAddress)
        /// A claim of the ID token that equals the value or contains it in its list.
        case claim(name: String, value: String)
    }

    /// Parses `ana@example.com` or `groups=fieldpost-admins`.
    ///
    /// - Returns: `nil` if the text is neither.
    static func entry(_ text: String) -> Entry? {
        let parts = text.split(separator: "=", maxSplits: 1)
        if parts.count == 2 { return .claim(name: String(parts[0]), value: String(parts[1])) }
        guard !text.contains("=") else { return nil }
        return EmailAddress(text).map { .address($0) }
    }

    /// - Parameters:
    ///   - email: The verified address in the provider's token.
    ///   - claims: Returns the token's values of a claim.
    static func isAdministrator(email: String, claims: (String) -> [String], among entries: [Entry]) -> Bool {
        // An address that Fieldpost does not support matches no entry, but a claim may match.
        let given = EmailAddress(email)
        return entries.contains { entry in
            switch entry {
            case .address(let address): given == address
            case .claim(let name, let value): claims(name).contains { $0.utf8.elementsEqual(value.utf8) }
            }
        }
    }
}
