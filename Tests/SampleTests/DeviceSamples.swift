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

/// Selects a node for a context of an entry. Selections that do not go with it are removed.
func selectNode(
    _ node: UUID, for context: UUID, of id: UUID, in realm: RealmPath, of state: inout DeviceState
) throws {
    guard let picker = ReportingPicker(ofPerson: realm, in: state.contents),
        let entry = try timeEntry(id, in: realm, of: state)
    else { return }
    let reporting = picker.selections(bySelecting: node, for: context, of: entry)
    let fields = try JSONEncoder().encode(["reporting": reporting])
    let patch = Mutation(operation: .patch, kind: .timeEntry, id: id, fields: Array(fields))
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

    @Test func offeredNodeIsSelected() throws {
        var state = DeviceState(clientID: UUID())
        let (catalogue, template, context, root, node) = (UUID(), UUID(), UUID(), UUID(), UUID())
        func object(_ kind: Kind, _ id: UUID, _ fields: some Encodable) throws -> SyncLine.Change {
            let object = DeviceObject(position: 1, fields: Array(try JSONEncoder().encode(fields)))
            return SyncLine.Change(id: ObjectID(kind: kind, id: id), object: object)
        }
        let user = User(email: "ana@example.com", name: "Ana", catalogue: catalogue, reportingTemplates: [template])
        let work = ReportingTemplate(name: "Work", type: "project", reportingContexts: [context])
        let sections = [ReportingContext.Section(name: "All", rootNode: root)]
        let part = ReportingContext(name: "Part", required: true, sections: sections)
        let entry = UUID()
        let own = [
            try object(.user, UUID(), user), try object(.reportingTemplate, template, work),
            try object(.reportingContext, context, part),
            try object(.timeEntry, entry, TimeEntry(reportingTemplate: template)),
        ]
        let roof = try object(.reportingTreeNode, node, ReportingTreeNode(name: "Roof", parent: root))
        for (path, list) in [(realm, own), (RealmPath.catalogue(catalogue), [roof])] {
            _ = state.take(.open(path, isReset: true))
            _ = state.take(.objects(path, cursor: nil, list))
        }
        _ = state.take(.checkpoint(position: 1, cursor: "1", cursors: [:]))
        try selectNode(UUID(), for: context, of: entry, in: realm, of: &state)
        #expect(try timeEntry(entry, in: realm, of: state)?.reporting == [])
        try selectNode(node, for: context, of: entry, in: realm, of: &state)
        let expected = [ReportingSelection(context: context, node: node)]
        #expect(try timeEntry(entry, in: realm, of: state)?.reporting == expected)
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
