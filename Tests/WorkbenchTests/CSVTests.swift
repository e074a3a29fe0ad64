import TestSupport
import Testing

@testable import Workbench

@Suite(.ownThreads) struct CSVTests {
    @Test func fieldsInQuotesHoldCommasQuotesAndLineEnds() throws {
        let table = try CSV("a,b,c\r\n1,\"x,\"\"y\"\"\r\nz\",\n\"\",é,3".utf8)
        #expect(table.header == ["a", "b", "c"])
        #expect(table.rows == [["1", "x,\"y\"\r\nz", ""], ["", "é", "3"]])
    }

    @Test(arguments: [",", ";", "\t"]) func separatorIsDetected(separator: String) throws {
        let table = try CSV("\u{FEFF}a\(separator)b\r\n\"1,;\t\"\(separator)2\r\n".utf8)
        #expect(table.header == ["a", "b"])
        #expect(table.rows == [["1,;\t", "2"]])
    }

    @Test func theLastLineMayEndOrNot() throws {
        #expect(try CSV("a\n1\n".utf8) == CSV("a\n1".utf8))
        #expect(try CSV("a,b\n1,".utf8).rows == [["1", ""]])
        #expect(try CSV("a\n".utf8).rows.isEmpty)
    }

    @Test(arguments: [
        ("", 1), ("a,b\n1", 2), ("a\n\"1", 2), ("a\n\"1\"2", 2), ("a\n1\"2\"", 2), ("a\r1", 1), ("a,b\n1,2\n1,2,3", 3),
        ("a\r", 1),
    ])
    func invalidTableIsRejectedWithItsRecord(text: String, record: Int) {
        let problem = #expect(throws: CSV.Problem.self) { try CSV(text.utf8) }
        #expect(problem?.record == record)
    }
}
