import Essentials
import Foundation
import Model
import Testing

/// Names that look the same are equal, and an invisible name is rejected.
@Suite struct DisplayNameTests {
    @Test(arguments: [
        ("Nord\u{200B}é", "Nordé"), ("Norde\u{301}", "Nordé"), ("ΟΔΟΣ", "οδος"), ("οδοσ", "οδος"),
        ("STRASSE", "Straße"), ("STRA\u{1E9E}E", "strasse"), ("RØD", "rød"), (" Nord\u{00A0}", "nord"),
        ("Nord  Øst", "nord\u{2003}øst"), ("\u{FB01}x", "FIX"), ("No\u{00AD}rd", "Nord"),
        ("\u{202E}Nord\u{202C}", "NORD"),
        ("No\u{7}rd", "Nord"), ("Nord\u{FE0F}", "Nord"), ("Nord\u{2800}", "Nord"), ("\u{3164}Nord", "Nord"),
        ("Ǆ", "ǆ"), ("ᾴ", "ΆΙ"),
    ])
    func visuallyEqualNamesAreEqual(one: String, other: String) {
        #expect(DisplayName.key(one) == DisplayName.key(other))
        #expect(DisplayName.key(one).hashValue == DisplayName.key(other).hashValue)
    }

    @Test(arguments: [
        ("Nord", "Nort"), ("Nord", "N ord"), ("Nordé", "Norde"), ("Nord 1", "Nord 2"), ("日本", "日木"), ("A", "B"),
        ("Nord+", "Nord-"), ("👍", "👎"),
    ])
    func othersAreDifferent(one: String, other: String) {
        #expect(DisplayName.key(one) != DisplayName.key(other))
    }

    /// Folding is idempotent.
    @Test func keyIsIdempotent() {
        for value in stride(from: UInt32(0x20), to: 0x1_FFFF, by: 1) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let key = DisplayName.key("a\(scalar)b")
            #expect(DisplayName.key(key) == key, "\(String(value, radix: 16))")
        }
    }

    @Test(arguments: [
        "", " ", "\t\n", "\u{200B}", "\u{2800}", "\u{3164}", "\u{115F}\u{1160}", "\u{FFA0}", "\u{FEFF}", "\u{00A0}",
        "\u{00AD}", "\u{202E}\u{202C}", "\u{2060}", "\u{180E}", "\u{E0041}", "\u{FE0F}", "\u{301}", "\u{20DD}",
        "\u{7}", " \u{200D} ",
    ])
    func invisibleNameIsRejected(name: String) throws {
        #expect(!DisplayName.isVisible(name))
        let encoded = String(decoding: try JSONEncoder().encode(name), as: UTF8.self)
        let kinds: [(Kind, String)] = [
            (.team, #"{"name":\#(encoded)}"#), (.personLookup, #"{"name":\#(encoded),"email":"a@b.example"}"#),
            (.reportingTreeNode, #"{"name":\#(encoded)}"#), (.reportingContext, #"{"name":\#(encoded)}"#),
            (.reportingTemplate, #"{"name":\#(encoded),"type":"project"}"#),
        ]
        for (kind, fields) in kinds {
            #expect(kind.objection(to: Array(fields.utf8)) == "'name' must have a visible character")
        }
        // A person may have no name.
        let person = Kind.person.objection(to: Array(#"{"name":\#(encoded)}"#.utf8))
        #expect((person == nil) == name.isEmpty)
    }

    @Test(arguments: ["x", "é", "日", "😀", "👨‍👩‍👧", "-", "٣", "e\u{301}", "न\u{93F}", "\u{E000}"])
    func visibleNameIsAccepted(name: String) { #expect(DisplayName.isVisible(name)) }
}
