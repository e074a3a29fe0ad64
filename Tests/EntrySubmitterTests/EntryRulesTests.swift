import BackendProtocol
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import EntrySubmitter

@Suite(.ownThreads) struct EntryRulesTests {
    private static let durations: [(seconds: Int, problem: String?)] = [
        (0, "Duration must be more than 0"), (-60, "Duration must be more than 0"),
        (17, "Duration must be at least 0.01 hours"),
        (18, nil), (86_400, nil), (86_401, "Duration must be at most 24 hours"),
    ]

    private static let intervals: [(start: String?, end: String?, problem: String?, seconds: Int?)] = [
        ("2015-03-30T08:00:00-04:00", "2015-03-30T09:30:00-04:00", nil, 5400),
        ("2015-03-30T08:00:00+02:00", "2015-03-30T08:00:00Z", nil, 7200),
        ("2015-03-30T08:00:00Z", "2015-03-30T08:00:00Z", "End time must be after start time", 0),
        ("2015-03-30T08:00:00Z", "2015-03-30T07:00:00Z", "End time must be after start time", -3600),
        ("2015-03-30T08:00:00Z", "2015-03-31T08:00:01Z", "Duration must be at most 24 hours", 86_401),
        (nil, "2015-03-30T08:00:00Z", "Start time is missing", nil),
        ("2015-03-30T08:00:00Z", nil, "End time is missing", nil),
    ]

    /// An entry on the first model's five contexts, each depending on the one before.
    private static func valid(_ objects: ReportingObjects) throws -> TimeEntry {
        let choices = [
            ("Customer", "12346"), ("Project", "ABC124"), ("Phase", "P1"), ("Activity", "A1"), ("Kind", "K1"),
        ]
        return TimeEntry(
            reportingTemplate: FirstModel.templateID,
            reporting: try choices.map {
                ReportingSelection(
                    context: try FirstModel.id($0.0, in: objects), node: try FirstModel.node($0.1, in: objects))
            },
            entryDate: Day("2015-03-30"), durationSeconds: 5400)
    }

    private func problems(_ change: (inout TimeEntry, inout ReportingObjects) throws -> Void) throws -> [String] {
        var objects = try FirstModel.repaired()
        var entry = try Self.valid(objects)
        try change(&entry, &objects)
        return EntryRules.problems(of: entry, in: objects)
    }

    @Test func completeEntryHasNoProblem() throws {
        #expect(try problems { _, _ in } == [])
        #expect(try problems { entry, _ in entry.reporting.reverse() } == [])
    }

    @Test func danglingContextRejectsItsNodes() throws {
        let objects = try FirstModel.load().objects
        let messages = EntryRules.problems(of: try Self.valid(objects), in: objects)
        #expect(messages == ["Kind: 'Fakturérbare' is not one of its choices"])
    }

    @Test func eachProblemHasOneMessage() throws {
        let messages = try problems { entry, _ in
            entry.reporting.removeAll()
            entry.durationSeconds = nil
            entry.entryDate = nil
            entry.text = String(repeating: "é", count: 41)
        }
        #expect(
            messages == [
                "Customer is missing", "Project is missing", "Phase is missing", "Activity is missing",
                "Kind is missing", "Date is missing", "Duration is missing",
                "Text has 41 characters; at most 40 are allowed",
            ])
    }

    @Test func templateIsRequiredAndMustExist() throws {
        #expect(try problems { entry, _ in entry.reportingTemplate = nil } == ["Template is missing"])
        let unknown = try problems { entry, _ in entry.reportingTemplate = UUID() }
        #expect(unknown == ["Template is not available any more"])
        let broken = try problems { _, objects in
            objects.templates[FirstModel.templateID]?.reportingContexts.append(UUID())
        }
        #expect(broken == ["Template 'Project time registration' refers to a choice that does not exist"])
    }

    @Test func nodesMustExistAndBeOffered() throws {
        let gone = try problems { _, objects in
            objects.nodes[try FirstModel.node("K1", in: objects)] = nil
        }
        #expect(gone == ["Kind: the selection is not available any more"])
        let foreign = try problems { entry, objects in
            entry.reporting[4].node = try FirstModel.node("P1", in: objects)
        }
        #expect(foreign == ["Kind: 'Div. grafisk arbejde' is not one of its choices"])
        let root = try problems { entry, objects in
            entry.reporting[0].node = try #require(objects.nodes[entry.reporting[0].node]?.parent)
        }
        #expect(root.first == "Customer: 'customer-root' is not one of its choices")
    }

    @Test func dependencyMustBeSelectedBefore() throws {
        let other = try problems { entry, objects in
            entry.reporting[0].node = try FirstModel.node("12345", in: objects)
        }
        #expect(other == ["Project: 'Design' does not go with the selections before it"])
        let later = try problems { _, objects in
            objects.templates[FirstModel.templateID]?.reportingContexts.swapAt(0, 1)
        }
        #expect(later == ["Project: 'Design' does not go with the selections before it"])
        let next = try problems { _, objects in
            objects.templates[FirstModel.templateID]?.reportingContexts.swapAt(1, 2)
        }
        #expect(next == ["Phase: 'Div. grafisk arbejde' does not go with the selections before it"])
    }

    /// Only nodes of the context's tree that depend on a selected one are accepted.
    @Test func onlyDependentNodesOfContextAreAccepted() throws {
        let objects = try FirstModel.repaired()
        let entry = try Self.valid(objects)
        let accepted = objects.nodes.filter { id, _ in
            var changed = entry
            changed.reporting[4].node = id
            return EntryRules.problems(of: changed, in: objects).isEmpty
        }
        #expect(accepted.values.compactMap(\.referenceId).sorted() == ["K1", "K2", "K3"])
    }

    @Test(arguments: [true, false]) func fixedSelectionCannotBeChanged(isHidden: Bool) throws {
        let messages = try problems { entry, objects in
            let customer = entry.reporting[0].context
            objects.contexts[customer]?.preselected = [entry.reporting[0].node]
            objects.contexts[customer]?.readOnly = !isHidden
            objects.contexts[customer]?.visible = !isHidden
            entry.reporting[0].node = try FirstModel.node("12345", in: objects)
        }
        #expect(messages.first == "Customer cannot be changed")
    }

    @Test func anyOfSeveralDependenciesSuffices() throws {
        let messages = try problems { entry, objects in
            objects.nodes[entry.reporting[1].node]?.dependencies.insert(UUID(), at: 0)
        }
        #expect(messages == [])
    }

    @Test func selectionsOutsideTemplateAreRejected() throws {
        let several = try problems { entry, objects in
            entry.reporting.append(
                ReportingSelection(
                    context: entry.reporting[0].context, node: try FirstModel.node("12345", in: objects)))
        }
        #expect(several == ["Only one Customer can be selected"])
        let stray = try problems { entry, objects in
            objects.templates[FirstModel.templateID]?.reportingContexts.removeLast()
        }
        #expect(stray == ["Kind is not part of template 'Project time registration'"])
    }

    @Test func preselectedNodesApplyWithoutSelection() throws {
        let messages = try problems { entry, objects in
            let last = entry.reporting.removeLast()
            objects.contexts[last.context]?.preselected = [last.node]
        }
        #expect(messages == [])
        var objects = try FirstModel.repaired()
        let kind = try FirstModel.id("Kind", in: objects)
        let preselected = try FirstModel.node("K2", in: objects)
        objects.contexts[kind]?.preselected = [preselected]
        let entry = try Self.valid(objects)
        let selection = objects.selections(of: entry).last
        #expect(selection?.name == "Kind")
        #expect(selection?.nodes == [try FirstModel.node("K1", in: objects)])
    }

    @Test func cyclicTreeTerminates() throws {
        let messages = try problems { entry, objects in
            let node = entry.reporting[0].node
            objects.nodes[node]?.parent = node
            let customer = entry.reporting[0].context
            objects.contexts[customer]?.sections.removeFirst()  // the suggestions, which name the node itself
        }
        #expect(messages == ["Customer: 'Arkyn Studios Aps' is not one of its choices"])
    }

    @Test(arguments: durations)
    func lengthOfDurations(seconds: Int, problem: String?) throws {
        #expect(try problems { entry, _ in entry.durationSeconds = seconds } == [problem].compactMap { $0 })
    }

    @Test(arguments: intervals)
    func lengthOfIntervals(start: String?, end: String?, problem: String?, seconds: Int?) throws {
        let messages = try problems { entry, _ in
            entry.timeType = .interval
            entry.durationSeconds = nil
            entry.startTime = start.flatMap { ZonedTime($0) }
            entry.endTime = end.flatMap { ZonedTime($0) }
            #expect(entry.seconds == seconds)
        }
        #expect(messages == [problem].compactMap { $0 })
    }
}

@Suite(.ownThreads) struct TextLimitTests {
    private func problem(_ text: String, _ limit: TextLimit) throws -> [String] {
        let objects = try FirstModel.repaired()
        return EntryRules.problems(of: TimeEntry(text: text), in: objects, textLimit: limit).filter {
            $0.hasPrefix("Text")
        }
    }

    @Test(arguments: TextLimit.Unit.allCases) func lengthIsCountedInBackendUnit(unit: TextLimit.Unit) throws {
        let lengths: [(text: String, utf16: Int, scalars: Int, utf8: Int)] = [
            ("abc", 3, 3, 3), ("\u{E9}", 1, 1, 2), ("e\u{301}", 2, 2, 3), ("🛠", 2, 1, 4), ("👩🏽‍🚒", 7, 4, 15),
            ("\r\n", 2, 2, 2),
        ]
        for (text, utf16, scalars, utf8) in lengths {
            let length =
                switch unit {
                case .utf16: utf16
                case .scalars: scalars
                case .utf8: utf8
                }
            #expect(try problem(text, TextLimit(length, unit)) == [])
            #expect(try problem(text, TextLimit(length - 1, unit)).count == 1)
        }
    }

    @Test func messageExplainsTheUnit() throws {
        #expect(
            try problem("abcd", TextLimit(3, .utf8)) == ["Text has 4 characters; at most 3 are allowed"])
        #expect(
            try problem("ééé", TextLimit(3, .utf8)) == [
                "Text has 6 bytes (a letter other than a to z has two or more, an emoji four or more); "
                    + "at most 3 are allowed"
            ])
    }
}

@Suite(.ownThreads) struct HoursTests {
    @Test(arguments: [
        (5400, "1.50"), (17, "0.00"), (18, "0.01"), (35, "0.01"), (53, "0.01"), (54, "0.02"), (86_400, "24.00"),
        (0, "0.00"), (-5400, "-1.50"), (-18, "0.00"), (-19, "-0.01"),
        (.max, "2562047788015215.50"), (.min, "-2562047788015215.50"),
    ])
    func secondsAreRoundedHalfUpToHundredths(seconds: Int, text: String) {
        #expect(Hours(seconds: seconds).description == text)
    }

    @Test func hundredthsRoundTripExactly() {
        for hundredths in -2500...2500 {
            let hours = Hours(hundredths: hundredths)
            #expect(Hours(seconds: hours.seconds) == hours)
            #expect(Hours(hours.description) == hours)
        }
        #expect(Hours("1.5")?.seconds == 5400)
        #expect(Hours("8")?.seconds == 28_800)
    }

    @Test(arguments: ["", ".", "1.", ".5", "1.500", "1,5", "+1", "1e1", "--1", "- 1", "1.-5", "1234567890"])
    func invalidHoursAreRejected(text: String) { #expect(Hours(text) == nil) }
}
