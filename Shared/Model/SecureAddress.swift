/// A user-supplied `https` URL that a server calls, restricted to forms that all URL parsers interpret as the same
/// host.
///
/// Its authority is a name or an IPv4 address with an optional port: no user information, escapes or brackets. A name
/// has no empty label, hence no trailing dot, and an IPv4 address is four decimal numbers: `localhost.`, `127.1` and
/// `0x7f000001` are rejected. All bytes are URL characters (RFC 3986, 2), without a fragment.
///
/// The addresses that a name resolves to are verified when it is called.
public struct SecureAddress: Equatable, Sendable {
    /// Maximum length in bytes.
    public static let bytesMax = 2_048

    /// The URL as supplied.
    public let text: String
    /// The name or IPv4 address in lower case.
    public let host: String

    /// Parses a URL; returns `nil` if it does not have the restricted form.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax, text.hasPrefix(Self.scheme), text.utf8.allSatisfy(Self.isAllowed) else {
            return nil
        }
        let authority = text.dropFirst(Self.scheme.count).prefix { $0 != "/" && $0 != "?" }
        let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, Self.isHost(parts[0]) else { return nil }
        if parts.count == 2 {
            guard Self.isDigits(parts[1]), let port = UInt16(parts[1]), port > 0 else {
                return nil
            }
        }
        self.text = text
        host = EmailAddress.lowered(String(parts[0]))
    }

    private static let scheme = "https://"

    private static func isHost(_ host: Substring) -> Bool {
        guard host.utf8.count <= 253, host.utf8.allSatisfy(isHostByte) else { return false }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.allSatisfy({ 1...63 ~= $0.utf8.count && $0.first != "-" && $0.last != "-" }) else { return false }
        // Some programs parse a name that ends in a number as an address
        // (https://url.spec.whatwg.org/#ends-in-a-number-checker).
        guard let last = labels.last, isDigits(last) || last.lowercased().hasPrefix("0x") else {
            return true
        }
        return labels.count == 4 && labels.allSatisfy { UInt8($0).map { number in "\(number)" } == String($0) }
    }

    private static func isDigits(_ text: Substring) -> Bool { text.utf8.allSatisfy { 0x30...0x39 ~= $0 } }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        isHostByte(byte) || "_~:/?[]@!$&'()*+,;=%".utf8.contains(byte)
    }
}
