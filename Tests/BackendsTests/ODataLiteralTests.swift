import Testing

@testable import Backends
@testable import Sandbox

@Suite struct ODataLiteralTests {
    /// A quote with a combining mark behind it is one Character, and a quote all the same.
    @Test(arguments: ["O'ana", "O'\u{301}ana", "''", "'", "a' or '1' eq '1", "'\u{600}", "\r\n'"])
    func literalIsReadAsItsText(text: String) throws {
        let filter = try ODataFilter("CompanyCode eq \(OData.literal(text)) and Day eq 'x'")
        #expect(filter.values(of: "CompanyCode") == [text] && filter.values(of: "Day") == ["x"])
    }
}
