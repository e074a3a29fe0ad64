/// An e-mail address in the form in which Fieldpost compares addresses.
///
/// Two addresses are equal if their bytes are equal after lowering the ASCII letters A to Z. Other characters are not
/// folded: `ana+phone@example.com` and `ana@example.com` are two people, as are `a.na@…` and `ana@…`, because those
/// rules are specific to each provider.
///
/// Addresses with non-ASCII characters (RFC 6531) are rejected: letters that look alike, or that have the same lower
/// case or normal form, would make one person's key open another's realm. A domain with such letters is written in its
/// ASCII form (`xn--…`, RFC 5891). Quoted local parts and domain literals are rejected too.
public struct EmailAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address in lower case.
    public let description: String
    /// The domain, after the `@`.
    public let domain: String

    /// Parses an address; returns `nil` if it is invalid or of a rejected form.
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

    /// Returns the text with its ASCII letters in lower case and all other characters unchanged.
    public static func lowered(_ text: String) -> String {
        String(decoding: text.utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    /// Describes why an address is not in the form that Fieldpost compares; `nil` if it is.
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
