internal import Model

/// Where a mail server is: `smtp://mail.example.com:587`, where STARTTLS is begun before anything is said, or
/// `smtps://mail.example.com:465`, which speaks TLS at once.
package enum MailServer {
    /// - Returns: Whether a text is such an address: a name or an IPv4 address with or without a port, and no more.
    package static func isUsable(_ text: String) -> Bool {
        for scheme in ["smtp://", "smtps://"] where text.hasPrefix(scheme) {
            let address = "https://" + text.dropFirst(scheme.count)
            return SecureAddress(address) != nil && !address.dropFirst(8).contains { "/?".contains($0) }
        }
        return false
    }
}
