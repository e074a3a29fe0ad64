import TestSupport
import Testing

@testable import Backends
@testable import Sandbox

@Suite(.ownThreads) struct ODataLiteralTests {
    /// A quote followed by a combining mark is one Character, and still a quote.
    @Test(arguments: ["O'ana", "O'\u{301}ana", "''", "'", "a' or '1' eq '1", "'\u{600}", "\r\n'"])
    func literalIsReadAsItsText(text: String) throws {
        let filter = try Filter(odata: "CompanyCode eq \(OData.literal(text)) and Day eq 'x'")
        #expect(filter.values(of: "CompanyCode") == [text] && filter.values(of: "Day") == ["x"])
    }
}
