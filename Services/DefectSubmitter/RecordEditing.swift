import BackendProtocol
import Compass

/// What a tracker does for a person's commands; a call each. The errors are those of `CompassClient`.
protocol RecordEditing: Sendable {
    /// Sees whether the person is let in.
    func logIn() async throws(BackendError)
    /// A record as it was last committed, or as it is in the person's edit session; `nil`: there is none.
    func record(_ id: String) async throws(BackendError) -> Record?
    func recordType() async throws(BackendError) -> RecordType
    /// Begins a new record.
    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record
    /// Begins to edit a record, with values that what is mandatory, and lists of choices, depend on.
    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record
    /// A field as it is in the edit session.
    func field(_ name: String, of id: String) async throws(BackendError) -> Field?
    func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record
    /// Ends the person's edit session of a record; one that is not open is done.
    func revert(_ id: String) async throws(BackendError)
    func delete(_ id: String, action: String, before deadline: WriteDeadline) async throws(BackendError)
}

extension CompassClient: RecordEditing {
    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record {
        try await create(before: deadline).record
    }

    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record {
        try await edit(id, action: action, values, before: deadline).record
    }
}
