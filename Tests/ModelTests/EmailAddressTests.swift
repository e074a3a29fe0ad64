import Essentials
import Model
import Testing

@Suite struct EmailAddressTests {
    @Test(arguments: [
        ("ana@example.com", "ana@example.com"), ("Ana@EXAMPLE.com", "ana@example.com"),
        ("ana+phone@example.com", "ana+phone@example.com"), ("a.n.a@example.com", "a.n.a@example.com"),
        ("o'neil@example.com", "o'neil@example.com"), ("ana@xn--bcher-kva.example", "ana@xn--bcher-kva.example"),
    ]) func onlyASCIILettersAreFolded(text: String, lowered: String) {
        #expect(EmailAddress(text)?.description == lowered)
    }

    /// Each resembles, or lowers or normalises to, another person's address.
    @Test(arguments: [
        "\u{212A}arl@example.com",  // the Kelvin sign lowers to k
        "an\u{0430}@example.com",  // a Cyrillic a
        "ana@ex\u{FF41}mple.com",  // a full-width a
        "ana\u{0301}@example.com",  // a combining accent
        "\u{FEFF}ana@example.com", "ana\u{200B}@example.com", "ana@example\u{3002}com", "ana@example.com\u{0}",
        "ana@ÉXAMPLE.com", "İana@example.com",
    ]) func lookAlikeAddressesAreRejected(text: String) {
        #expect(EmailAddress(text) == nil)
        #expect((try? RealmPath.user(text)) == nil)
    }

    @Test(arguments: [
        "", "ana", "@example.com", "ana@", "ana@example", "ana@@example.com", "ana@b@example.com", ".ana@example.com",
        "ana.@example.com", "a..a@example.com", "ana@-example.com", "ana@example-.com", "ana@example..com",
        "ana@.example.com", "ana@example.com.", " ana@example.com", "ana@example.com ", "a b@example.com",
        "\"ana\"@example.com", "ana@[192.0.2.1]", "ana/x@example.com", "ana%40x@example.com", "ana?x@example.com",
        "ana\r\n@example.com", "<ana@example.com>", "ana@example.com,bo@example.com", "ana@exa_mple.com",
        String(repeating: "a", count: 65) + "@example.com",
        "a@" + String(repeating: "b", count: 64) + ".com",
        "a@" + Array(repeating: String(repeating: "b", count: 60), count: 5).joined(separator: "."),
    ]) func invalidAddressIsRejected(text: String) { #expect(EmailAddress(text) == nil) }

    @Test func plusAndDotsAreSignificant() {
        #expect(EmailAddress("ana+x@example.com") != EmailAddress("ana@example.com"))
        #expect(EmailAddress("a.na@example.com") != EmailAddress("ana@example.com"))
    }
}

@Suite struct FormFieldsTests {
    @Test func formFieldsRoundTrip() {
        var fields = FormFields()
        fields.add("a b", "1&2=3")
        fields.add("ä", "%+\r\n\u{0}")
        #expect(fields.encoded == "a%20b=1%262%3D3&%C3%A4=%25%2B%0D%0A%00")
        #expect(FormFields(fields.encoded) == fields)
    }

    @Test func duplicateFieldHasNoValue() {
        #expect(FormFields("a=1&a=2&b=3")?["a"] == nil)
        #expect(FormFields("a=1&a=2&b=3")?["b"] == "3")
        #expect(FormFields("x+y=a+b&flag")?["x y"] == "a b")
        #expect(FormFields("flag")?["flag"] == "")
    }

    @Test(arguments: ["a=%", "a=%4", "a=%zz", "a=%ff", String(repeating: "a=1&", count: 65)])
    func invalidFormIsRejected(text: String) { #expect(FormFields(text) == nil) }
}
