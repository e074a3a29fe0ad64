import BackendConnections
import BackendProtocol
import Compass
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport

@testable import Compass
@testable import DefectSubmitter

/// A tracker that runs a closure right before a commit or an edit.
struct InterruptedTracker: RecordEditing {
    enum Moment { case edit, commit }

    let tracker: CompassClient
    let moment: Moment
    let interrupt: @Sendable () async -> Void
    /// Values that its actions write themselves.
    var written: [String: String] = [:]

    init(_ tracker: CompassClient, before moment: Moment = .commit, _ interrupt: @escaping @Sendable () async -> Void) {
        self.tracker = tracker
        self.moment = moment
        self.interrupt = interrupt
    }

    func logIn() async throws(BackendError) { try await tracker.logIn() }
    func record(_ id: String) async throws(BackendError) -> Record? { try await tracker.record(id) }
    func recordType() async throws(BackendError) -> RecordType { try await tracker.recordType() }
    func folders(in id: String?) async throws(BackendError) -> [Folder]? { try await tracker.folders(in: id) }
    func page(_ number: Int, ofQuery id: String) async throws(BackendError) -> QueryPage? {
        try await tracker.page(number, ofQuery: id)
    }
    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record {
        try await tracker.openNew(before: deadline)
    }
    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        if moment == .edit { await interrupt() }
        let record = try await tracker.open(id, action: action, values, before: deadline)
        return Record(
            id: record.id,
            fields: record.fields.map { field in
                Field(
                    name: field.name, type: field.type, value: written[field.name] ?? field.value,
                    isReadable: field.isReadable, requiredness: field.requiredness, choices: field.choices,
                    message: field.message)
            })
    }
    func field(_ name: String, of id: String) async throws(BackendError) -> Field? {
        try await tracker.field(name, of: id)
    }
    func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        if moment == .commit { await interrupt() }
        return try await tracker.commit(id, values, before: deadline)
    }
    func revert(_ id: String) async throws(BackendError) { try await tracker.revert(id) }
    func delete(_ id: String, action: String, before deadline: WriteDeadline) async throws(BackendError) {
        try await tracker.delete(id, action: action, before: deadline)
    }
}

extension CommandWorld {
    /// Adds a mirror of a record to Ana's realm, as the notifier does.
    mutating func addMirror(of record: String) throws -> UUID {
        let id = TrackerIDs(server: compass.url, repository: "CCMRepo", database: "SAMPL").defect(record)
        let json = #"{"record": "\#(record)", "headline": "H", "isAssignedToMe": false, "isReportedByMe": true}"#
        try acme.put([(id, json)], .defect, into: .user("ana@example.com"))
        let realm = try acme.realm(.user("ana@example.com"))
        try acme.connection.run(
            """
            INSERT INTO defect.mirror (environment_id, defect_id, realm_id)
            VALUES (\(acme.id.rawValue), \(id), \(realm))
            """)
        return id
    }

    /// Whether `defect.mirror` has rows.
    mutating func hasMirrorRows() throws -> Bool {
        try acme.connection.run("SELECT FROM defect.mirror").count > 0
    }

    mutating func hasMirror(_ id: UUID) throws -> Bool {
        try acme.connection.run(
            "SELECT count(*) FROM store.object WHERE kind = \(Kind.defect) AND id = \(id) AND NOT deleted"
        )[0].decode(Int64.self) > 0
    }
}
