import BackendProtocol
import Compass

/// The tracker operations of people's commands, one call each. Errors are those of `CompassClient`.
protocol RecordEditing: Sendable {
    /// Checks whether the tracker accepts the login.
    func logIn() async throws(BackendError)
    /// Returns a record as last committed, or as it is in the person's edit session; `nil`: it does not exist.
    func record(_ id: String) async throws(BackendError) -> Record?
    func recordType() async throws(BackendError) -> RecordType
    /// Opens a new record.
    func openNew(before deadline: WriteDeadline) async throws(BackendError) -> Record
    /// Opens an edit session, and writes the values that mandatory fields and lists depend on.
    func open(
        _ id: String, action: String?, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record
    /// Returns a field as it is in the edit session.
    func field(_ name: String, of id: String) async throws(BackendError) -> Field?
    func commit(
        _ id: String, _ values: [FieldValue], before deadline: WriteDeadline
    ) async throws(BackendError) -> Record
    /// Ends the person's edit session of a record, if one is open.
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
