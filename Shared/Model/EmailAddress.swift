/// An e-mail address as Fieldpost compares them.
///
/// The rule: two addresses are the same when their bytes are, after the ASCII letters A to Z were lowered; nothing else
/// is folded. `ana+phone@example.com` and `ana@example.com` are two people, as are `a.na@…` and `ana@…`: only the
/// provider knows its own rules. Addresses with anything but ASCII (RFC 6531) are refused, because letters that look
/// alike, or that lower or normalise to the same, would be one person's key to another's realm; a domain with such
/// letters is written in its ASCII form (`xn--…`, RFC 5891). Quoted local parts and domain literals are refused too.
public struct EmailAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address, lowered.
    public let description: String
    /// What follows the `@`.
    public let domain: String

    /// Reads an address; `nil` when it is not one, or one of those that are refused.
    public init?(_ text: String) {
        let lowered = Self.lowered(text)
        let parts = lowered.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        // Lengths: RFC 5321 §4.5.3.1.
        guard parts.count == 2, (1...64).contains(parts[0].count), (3...254).contains(lowered.utf8.count),
            Self.isLocalPart(parts[0]), Self.isDomain(parts[1]), RealmPath("/users/" + lowered) != nil
        else { return nil }
        description = lowered
        domain = String(decoding: parts[1], as: UTF8.self)
    }

    /// The text with its ASCII letters lowered, and nothing else changed.
    public static func lowered(_ text: String) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Describes why an address is not in the form in which Fieldpost compares them; `nil` if it is.
    static func objection(to text: String, of field: String) -> String? {
        EmailAddress(text)?.description == text ? nil : "'\(field)' must be an e-mail address in lower case"
    }

    /// A dot-atom (RFC 5322 §3.2.3).
    private static func isLocalPart(_ bytes: Substring.UTF8View) -> Bool {
        bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { atom in
            !atom.isEmpty
                && atom.allSatisfy { isLetterOrDigit($0) || "!#$%&'*+-/=?^_`{|}~".utf8.contains($0) }
        }
    }

    /// Two or more labels of letters, digits and inner hyphens (RFC 1123 §2.1).
    private static func isDomain(_ bytes: Substring.UTF8View) -> Bool {
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return labels.count >= 2
            && labels.allSatisfy { label in
                (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
                    && label.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }
            }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte)
    }
}
