import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DefectSubmitter

/// Choices, limited to the size of an object.
@Suite(.ownThreads) struct ChoiceListsTests {
    @Test func listsWithinLimitsAreComplete() {
        var lists = ChoiceLists()
        lists.add(["a", "b"], of: "Severity")
        lists.add([], of: "Headline")
        #expect(lists.choices == ["Severity": ["a", "b"], "Headline": []] && lists.messages.isEmpty)
    }

    @Test func listsAboveObjectSizeAreTruncatedWithMessage() throws {
        var lists = ChoiceLists()
        for field in 1...20 {
            lists.add((1...2_000).map { "\($0) \u{1}\"" + String(repeating: "ä", count: 600) }, of: "f\(field)")
        }
        #expect(lists.messages.count == 20 && lists.choices.count == 20)
        #expect(lists.messages[0].contains("'f1' has 2000 choices; only the first"))
        let command = DefectCommand(
            operation: .choices, status: .done, messages: lists.messages, choices: lists.choices)
        #expect(try JSONEncoder().encode(command).count <= Kind.fieldsBytesMax)
    }

    @Test func longListIsTruncated() {
        var lists = ChoiceLists()
        lists.add((1...1_001).map { "\($0)" }, of: "f")
        #expect(lists.choices["f"]?.count == 1_000 && lists.messages.count == 1)
    }
}
