internal import Model

/// URLs of mail servers: `smtp://mail.example.com:587` requires STARTTLS before any other command;
/// `smtps://mail.example.com:465` uses TLS from the start.
package enum MailServer {
    /// - Returns: Whether a text is such a URL: a host name or IPv4 address, optionally a port, and nothing more.
    package static func isUsable(_ text: String) -> Bool {
        for scheme in ["smtp://", "smtps://"] where text.hasPrefix(scheme) {
            let address = "https://" + text.dropFirst(scheme.count)
            return SecureAddress(address) != nil && !address.dropFirst(8).contains { "/?".contains($0) }
        }
        return false
    }
}
