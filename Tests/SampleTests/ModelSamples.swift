import Essentials
import Foundation
import Model
import Testing

// The catalogue of Model quotes these functions.

/// Returns a mutation that creates an entry.
///
/// - Throws: An error with the reason if the server would reject the fields.
func creation(of entry: TimeEntry) throws -> Mutation {
    let fields = Array(try JSONEncoder().encode(entry))
    if let reason = Kind.timeEntry.objection(to: fields) { throw InvalidEntry(reason: reason) }
    return Mutation(operation: .put, kind: .timeEntry, id: UUID(), fields: fields)
}

/// Displays the choices of an entry, and returns the reasons for which it would be rejected.
func display(_ form: ReportingForm, of picker: ReportingPicker, show: (String) -> Void) -> [String] {
    for choice in form.choices where choice.isVisible {
        let titles = choice.selected.compactMap { picker.title(of: $0) }
        show("\(choice.name): \(titles.joined(separator: ", "))")
        for section in choice.sections {
            show("  \(section.name)")
            for option in section.options.prefix(section.shownCount) {
                show(String(repeating: "  ", count: option.depth + 2) + option.title)
            }
        }
    }
    return form.problems.map(\.message)
}

/// Returns the object and the position of a time entry's event; `nil` for other events.
func changedEntry(_ headers: [String: String]) -> (object: EventSubject, position: Int64)? {
    guard headers[EventHeaders.type] == EventHeaders.type(of: .timeEntry),
        let object = headers[EventHeaders.subject].flatMap({ EventSubject($0) }),
        let position = headers[EventHeaders.position].flatMap({ Int64($0) })
    else { return nil }
    return (object, position)
}

struct InvalidEntry: Error, Equatable {
    let reason: String
}

@Suite struct ModelSampleTests {
    @Test func invalidEntryIsReported() throws {
        var entry = TimeEntry(text: "survey", durationSeconds: 3_600)
        #expect(try creation(of: entry).kind == .timeEntry)
        entry.durationSeconds = .max
        #expect(throws: InvalidEntry.self) { try creation(of: entry) }
    }

    @Test func choicesAreDisplayed() {
        let (template, context, root, roof) = (UUID(), UUID(), UUID(), UUID())
        let sections = [ReportingContext.Section(name: "All", rootNode: root)]
        let objects = ReportingObjects(
            templates: [template: ReportingTemplate(name: "Work", type: "project", reportingContexts: [context])],
            contexts: [context: ReportingContext(name: "Part", required: true, sections: sections)],
            nodes: [roof: ReportingTreeNode(name: "Roof", parent: root)])
        let picker = ReportingPicker(objects, templates: [template])
        var entry = TimeEntry(reportingTemplate: template)
        var lines: [String] = []
        var problems = display(picker.form(for: entry), of: picker) { lines.append($0) }
        #expect(problems == ["Part is missing"])
        #expect(lines == ["Part: ", "  All", "    Roof"])
        entry.reporting = picker.selections(bySelecting: roof, for: context, of: entry)
        lines = []
        problems = display(picker.form(for: entry), of: picker) { lines.append($0) }
        #expect(problems == [] && lines.first == "Part: Roof")
    }

    @Test func eventOfAnotherKindIsSkipped() throws {
        let subject = EventSubject(realm: try .user("ana@example.com"), kind: .timeEntry, id: UUID())
        var headers = [
            EventHeaders.type: "fieldpost.TimeEntry", EventHeaders.subject: "\(subject)", EventHeaders.position: "812",
        ]
        let changed = try #require(changedEntry(headers))
        #expect(changed.object == subject && changed.position == 812)
        headers[EventHeaders.type] = EventHeaders.type(of: .note)
        #expect(changedEntry(headers) == nil)
    }
}
