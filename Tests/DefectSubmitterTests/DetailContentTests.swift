import BackendProtocol
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Compass
@testable import DefectSubmitter

/// Details, limited to the size of an object.
@Suite(.ownThreads) struct DetailContentTests {
    private func content(_ add: (inout DetailContent) -> Void) -> DetailContent {
        var content = DetailContent(readAt: Timestamp(millisecondsSinceEpoch: 1_700_000_000_123))
        add(&content)
        return content
    }

    private func field(_ name: String, _ value: String, isReadable: Bool = true) -> Field {
        Field(
            name: name, type: "SHORT_STRING", value: value, isReadable: isReadable, requiredness: .other("NEW"),
            choices: nil, message: nil)
    }

    private func size(_ content: DetailContent) throws -> Int {
        let command = DefectCommand(
            operation: .read, fields: ["x": String(repeating: "x", count: ComparisonRule.valueBytesMax)], status: .done,
            messages: content.messages, detail: content.detail)
        return try JSONEncoder().encode(command).count
    }

    @Test func shortValuesAreComplete() {
        let content = content { $0.add([field("a", "1"), field("b", ""), field("c", "", isReadable: false)]) }
        #expect(content.detail.fields?.map(\.value) == ["1", "", nil])
        #expect(content.detail.fields?.allSatisfy { $0.requiredness == .optional && $0.isTruncated == nil } == true)
        #expect(content.messages == ["values that cannot be read: 1"])
    }

    /// Only the long values are truncated, and the others stay complete.
    @Test func longValuesAreTruncated() throws {
        let long = String(repeating: "\u{1}\"ø", count: 20_000)
        let content = content { $0.add([field("a", "short"), field("b", long), field("c", "c"), field("d", long)]) }
        let fields = try #require(content.detail.fields)
        #expect(fields.map(\.isTruncated) == [nil, true, nil, true])
        #expect(fields[0].value == "short" && fields[2].value == "c")
        for index in [1, 3] {
            let value = try #require(fields[index].value)
            #expect(long.hasPrefix(value) && value.utf8.count > 4_000)
        }
        #expect(content.messages == ["values that are too long and are truncated: 2"])
        #expect(try size(content) <= Kind.fieldsBytesMax)
    }

    @Test func manyFieldsAreTruncatedWithMessage() throws {
        let content = content { content in
            content.add((1...2_000).map { field("field \($0)", String(repeating: "v", count: 500)) })
        }
        let count = try #require(content.detail.fields?.count)
        #expect(count > 100 && content.messages.last == "fields that are not included: \(2_000 - count)")
        #expect(try size(content) <= Kind.fieldsBytesMax)
    }

    /// The choices of a form use what its fields leave.
    @Test func formWithLongListsIsTruncated() throws {
        let content = content { content in
            content.add(
                (1...20).map { field("f\($0)", String(repeating: "v", count: 9_000)) },
                bytesMax: DetailContent.formFieldsBytesMax)
            var lists = ChoiceLists(bytesMax: content.bytesLeft)
            for number in 1...20 { lists.add((1...900).map { "choice \($0)" }, of: "f\(number)") }
            content.add(lists)
        }
        #expect(content.detail.fields?[0].choices?.count == 900 && content.messages.count > 5)
        #expect(try size(content) <= Kind.fieldsBytesMax)
    }

    @Test func widestRowFits() throws {
        let columns = (1...150).map { "column \($0)" }
        let row = ResultRow(columns: columns, values: columns.map { _ in String(repeating: "\n", count: 2_000) })
        let page = ResultPage(
            rows: [row, row, row], isLast: true,
            unreadable: [UnreadableRecord(list: "a result set", id: nil, reason: "r")])
        let content = content { $0.add(QueryPage(columns: columns, page: page), from: 50) }
        #expect(content.detail.columns?.count == DetailContent.columnsMax)
        #expect(content.detail.rows?.count == 1 && content.detail.nextRow == 51)
        #expect(
            content.messages == [
                "columns that are not included: 50", "values that are too long and are truncated: 100",
                "rows that cannot be read: 1",
            ])
        #expect(try size(content) <= Kind.fieldsBytesMax)
    }

    /// A page can be resumed at a row in its middle.
    @Test func pageContinuesAtItsNextRow() {
        let rows = (0..<QueryPage.rowsMax).map { ResultRow(columns: ["id"], values: ["\($0)"]) }
        func next(_ first: Int, isLast: Bool = false) -> String {
            let page = ResultPage(rows: rows, isLast: isLast)
            let content = content { $0.add(QueryPage(columns: ["id"], page: page), from: first) }
            return "\(content.detail.rows?.first?[0] ?? "none") \(content.detail.nextRow ?? -1)"
        }
        #expect(next(0) == "0 50" && next(107) == "7 150" && next(107, isLast: true) == "7 -1")
        #expect(next(49_950) == "0 -1", "no page is after the last one that can be requested")
    }

    @Test func prefixNeverSplitsACharacter() {
        #expect("aøb".prefix(jsonBytes: 2) == "a" && "aøb".prefix(jsonBytes: 3) == "aø")
        #expect("\"\n".prefix(jsonBytes: 7) == "\"" && "\"\n".prefix(jsonBytes: 8) == "\"\n")
        #expect("😀".prefix(jsonBytes: 3).isEmpty && "".prefix(jsonBytes: 0).isEmpty)
    }
}
