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
