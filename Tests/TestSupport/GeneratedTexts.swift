package import Essentials

/// Random texts, including some that only programs produce; one visible character is any number of scalars.
///
/// They are JSON strings because JSON can contain an unpaired UTF-16 surrogate and a Swift string cannot.
package enum GeneratedTexts {
    /// Generates a JSON string with its quotes.
    package static func json(_ random: inout SplitMix64) -> String {
        let partCount =
            random.happens(10) ? Int.random(in: 30...90, using: &random) : .random(in: 0...12, using: &random)
        let kinds = (0..<Int.random(in: 1...3, using: &random)).map { _ in Int.random(in: 0..<kindCount, using: &random)
        }
        var json = "\""
        for _ in 0..<partCount {
            let kind = kinds[Int.random(in: 0..<kinds.count, using: &random)]
            if kind == 0, random.happens(4) {
                json += ["\\ud83d", "\\ude00", "\\ude00\\ud83d", "\\u0000"][Int.random(in: 0..<4, using: &random)]
                continue
            }
            for scalar in part(kind, &random).unicodeScalars { append(scalar, to: &json, &random) }
        }
        return json + "\""
    }

    private static let samples = [
        ["pier ", "wash", "12", " ", "  ", "a", "Zz"],
        [
            "e\u{301}", "\u{E9}", "o\u{308}\u{304}\u{323}", "Z\u{351}\u{36B}\u{343}\u{36A}", "\u{301}",
            "\u{1100}\u{1161}", "가",
        ],
        ["🛠", "👩🏽‍🚒", "👨‍👩‍👧‍👦", "🇩🇰", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "❤️", "🇩", "\u{200D}", "🏽"],
        ["क्षि", "நி", "ক্ষ", "กำ", "ที่", "ເກົ່າ", "သွှ"],
        ["שלום", "عربي", "\u{202E}x\u{202C}", "\u{600}", "\u{6DD}", "\u{110BD}", "\u{5D0}\u{5B8}"],
        [
            "\r\n", "\n", "\r", "\t", "\u{1}", "\u{1F}", "\u{7F}", "\u{85}", "\u{2028}", "\u{200B}", "\u{FEFF}",
            "\u{AD}",
        ],
        ["'", "\"", "\\", "%41", "#", "&", "<b>", "'\u{301}", "#\u{301}", "$", ")", "/", "=?utf-8?Q?x?="],
        ["\u{FFFF}", "\u{FFFE}", "\u{10FFFF}", "\u{E000}", "\u{FFFD}", "漢字", "𝒳", "ß", "İ", "ﬁ", "Å"],
        ["#AAAAAAAAAAAAAAAAAAAAAA#", " #", "# ", "#AAAA"],
    ]
    private static var kindCount: Int { samples.count }

    private static func part(_ kind: Int, _ random: inout SplitMix64) -> String {
        let parts = samples[kind]
        return parts[Int.random(in: 0..<parts.count, using: &random)]
    }

    /// Returns the scalar literally or as an equivalent escape sequence.
    private static func append(_ scalar: Unicode.Scalar, to json: inout String, _ random: inout SplitMix64) {
        if scalar.value >= 0x20, scalar != "\"", scalar != "\\", !random.happens(20) {
            json.unicodeScalars.append(scalar)
            return
        }
        for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
            json += "\\u" + padded(unit)
        }
    }

    private static func padded(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
