import Essentials
import FoundationEssentials
import Model

/// An e-mail about notices: ASCII, lines of at most 76 bytes that end with CR LF.
///
/// Source: RFC 5322 (headers), RFC 2047 (`encoded-word`s of the subject), RFC 2045, 6.7 (quoted-printable), RFC 3834
/// (`Auto-Submitted`, which prevents automatic replies).
struct MailMessage {
    let bytes: [UInt8]

    /// Limit on the Unicode scalars of a subject. The text is not limited.
    private static let subjectCountMax = 120

    /// - Parameters:
    ///   - id: The local part of the `Message-ID`; the sender's domain is its domain.
    ///   - items: One notice, or all notices of a digest.
    init(id: UUID, from: String, to: String, date: Timestamp, items: [Notice]) {
        let subject = items.count == 1 ? items[0].text : "\(items.count) notices"
        let domain = from.split(separator: "@").last ?? "localhost"
        let text =
            items.count == 1
            ? items[0].text + "\n"
            : items.map { "\($0.timestamp.minute) UTC  \(Self.oneLine($0.text))\n" }.joined()
        let head = [
            "From: <\(Self.oneLine(from))>", "To: <\(Self.oneLine(to))>", "Subject: \(Self.encodedWords(of: subject))",
            "Date: \(date.httpText.dropLast(3))+0000", "Message-ID: <\(id.text)@\(domain)>",
            "Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
            "Content-Transfer-Encoding: quoted-printable",
        ]
        bytes = Array((head.joined(separator: "\r\n") + "\r\n\r\n" + Self.quotedPrintable(text)).utf8)
    }

    /// Replaces line ends and other control characters, which could inject a header.
    static func oneLine(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .lineSeparator, .paragraphSeparator: " "
                    default: scalar
                    }
                }))
    }

    /// Returns a subject as `encoded-word`s, each below 76 letters and of complete scalars. Plain ASCII stays
    /// unchanged.
    static func encodedWords(of subject: String) -> String {
        let text = oneLine(subject).prefix(scalars: subjectCountMax)
        let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } && !text.contains("=?") && text.utf8.count <= 66
        guard !isPlain else { return text }
        var words: [[UInt8]] = [[]]
        for scalar in text.unicodeScalars {
            let bytes = Array(String(scalar).utf8)
            // 39 bytes are 52 letters of base64, which leaves space for the header's name.
            if words[words.count - 1].count + bytes.count > 39 { words.append([]) }
            words[words.count - 1] += bytes
        }
        return words.map { "=?utf-8?B?\(Data($0).base64EncodedString())?=" }.joined(separator: "\r\n ")
    }

    /// Encodes a text whose lines end with LF.
    static func quotedPrintable(_ text: String) -> String {
        var result = ""
        for line in text.replacing("\r\n", with: "\n").split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast()
        {
            var count = 0
            let bytes = Array(line.utf8)
            for (index, byte) in bytes.enumerated() {
                let isLast = index == bytes.count - 1
                let isPlain = byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "=") || byte == 0x20 && !isLast
                let part = isPlain ? String(UnicodeScalar(byte)) : "=" + hex(byte)
                if count + part.utf8.count > 75 {
                    result += "=\r\n"
                    count = 0
                }
                result += part
                count += part.utf8.count
            }
            result += "\r\n"
        }
        return result
    }

    private static func hex(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.count == 1 ? "0" + digits : digits
    }
}

extension Timestamp {
    /// `2026-11-23 07:30`
    fileprivate var minute: String {
        let text = description
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5))"
    }
}
