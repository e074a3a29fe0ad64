package import BackendProtocol

/// A record that is being edited: it ends with ``commit(_:before:)`` or ``revert()``, and is the account's alone.
/// Others may edit the same record meanwhile; the first commit wins, and the others' are `refused`.
///
/// It is a value and holds nothing open here: a process that ends leaves the session with the server, where
/// ``CompassClient/revert(_:)`` ends it.
package struct EditSession: Sendable {
    private let client: CompassClient
    /// The fields as they are at the beginning of the action, with what has become mandatory by it.
    package let record: Record
    /// The action it was begun with.
    package let action: String?

    init(client: CompassClient, record: Record, action: String?) {
        self.client = client
        self.record = record
        self.action = action
    }

    package var id: String { record.id }

    /// A field with what can be chosen for it now.
    package func field(_ name: String) async throws(BackendError) -> Field? {
        try await client.field(name, of: id)
    }

    /// Saves `values` with the record.
    ///
    /// - Returns: The record as Compass has saved it.
    /// - Throws: `refused` when a rule of the record type says no (the session stays open, and is to be committed
    ///   otherwise or reverted), or when somebody else's commit was faster; `outcomeUnknown` when it must be read and
    ///   compared before anything is repeated.
    package func commit(_ values: [FieldValue], before deadline: WriteDeadline) async throws(BackendError) -> Record {
        try await client.commit(id, values, before: deadline)
    }

    /// Ends it without saving anything.
    package func revert() async throws(BackendError) { try await client.revert(id) }
}
