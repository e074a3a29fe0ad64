import DeviceClient
import Essentials
import Foundation
import Model
import Testing

// The catalogue of DeviceClient quotes these functions.

/// Creates a draft, which `state` shows immediately, and returns its id.
func addDraft(_ text: String, on day: Day, in realm: RealmPath, to state: inout DeviceState) throws -> UUID {
    let fields = try JSONEncoder().encode(TimeEntry(text: text, entryDate: day, durationSeconds: 3_600))
    let draft = Mutation(operation: .put, kind: .timeEntry, id: UUID(), fields: Array(fields))
    _ = try state.enqueue(draft, in: realm)
    return draft.id
}

/// Returns an entry as shown; `nil` if it does not exist.
func timeEntry(_ id: UUID, in realm: RealmPath, of state: DeviceState) throws -> TimeEntry? {
    try state[realm, ObjectID(kind: .timeEntry, id: id)].map { object in
        try JSONDecoder().decode(TimeEntry.self, from: Data(object.fields))
    }
}

/// Applies a line of the stream, and displays the changed objects.
func apply(
    _ bytes: [UInt8], to state: inout DeviceState, display: (ObjectAddress, DeviceObject?) -> Void
) throws {
    guard let line = try SyncLine.read(bytes) else { return }  // a type of line that only newer versions support
    for address in state.take(line).changed {
        display(address, state[address.realm, address.object])
    }
}

/// Requests the submission of an entry, unless it was changed after `position`.
func submit(_ id: UUID, at position: Int64, in realm: RealmPath, of state: inout DeviceState) throws {
    let fields = Array(#"{"submitRequested":true}"#.utf8)
    let patch = Mutation(operation: .patch, kind: .timeEntry, id: id, fields: fields, position: position)
    _ = try state.enqueue(patch, in: realm)
}

/// Returns the message about an answered mutation; `nil` if the person needs none.
func message(about queued: QueuedMutation) -> String? {
    switch queued.outcome {
    case .accepted, nil: nil
    case .rejected(code: "version-conflict", _): "The entry was changed on another device."
    case .rejected(_, let detail): detail
    case .expired: "The result has expired. Verify what is displayed."
    }
}

@Suite struct DeviceSampleTests {
    private let realm: RealmPath

    init() throws { realm = try RealmPath.user("ana@example.com") }

    @Test func draftIsShownImmediately() throws {
        var state = DeviceState(clientID: UUID())
        let day = try #require(Day(year: 2026, month: 3, day: 30))
        let id = try addDraft("survey", on: day, in: realm, to: &state)
        #expect(try timeEntry(id, in: realm, of: state)?.text == "survey")
        #expect(try timeEntry(UUID(), in: realm, of: state) == nil)
    }

    @Test func changedObjectsAreDisplayedAtTheCheckpoint() throws {
        var state = DeviceState(clientID: UUID())
        let id = UUID()
        var displayed: [ObjectAddress: Int64?] = [:]
        for line in [
            #"{"open":{"realm":"\#(realm)","reset":true}}"#, #"{"weather":{}}"#,
            """
            {"objects":{"realm":"\(realm)","cursor":"1:7:0","list":[{"kind":"TimeEntry","id":"\(id.text)",\
            "position":7,"fields":{"text":"a"}}]}}
            """,
            #"{"checkpoint":{"position":7,"cursor":"1:7:7"}}"#,
        ] {
            #expect(displayed.isEmpty)
            try apply(Array(line.utf8), to: &state) { displayed[$0] = $1?.position }
        }
        #expect(displayed == [ObjectAddress(realm, ObjectID(kind: .timeEntry, id: id)): 7])
    }

    @Test func versionConflictIsReported() throws {
        var state = DeviceState(clientID: UUID())
        try submit(UUID(), at: 7, in: realm, of: &state)
        let next = state.nextRequest()
        let request = try #require(next)
        let results = """
            {"results":[{"sequence":1,"rejected":{"type":"version-conflict","detail":"position 9"}}],\
            "expectedSequence":2}
            """
        let response = try #require(try QueueResponse.read(status: 200, body: Array(results.utf8)))
        let update = state.take(response, to: request, newClientID: UUID())
        #expect(update.answers.map(message) == ["The entry was changed on another device."])
    }
}
