package import BackendProtocol

/// An edit session of a record, private to the account, which ends with ``commit(_:before:)`` or ``revert()``. Several
/// accounts may edit the same record; the first commit succeeds, and the others are `refused`.
///
/// It is a value without local resources: after a crash the session remains on the server, where
/// ``CompassClient/revert(_:)`` ends it.
package struct EditSession: Sendable {
    private let client: CompassClient
    /// The fields at the beginning of the action, with the requiredness that the action sets.
    package let record: Record
    /// The action of the session.
    package let action: String?

    init(client: CompassClient, record: Record, action: String?) {
        self.client = client
        self.record = record
        self.action = action
    }

    package var id: String { record.id }

    /// Returns a field with its current choices.
    package func field(_ name: String) async throws(BackendError) -> Field? {
        try await client.field(name, of: id)
    }

    /// Saves `values` and ends the session.
    ///
    /// - Returns: The record as saved by Compass.
    /// - Throws: `refused` if a rule of the record type rejects the values (the session stays open, to be committed
    ///   with other values or reverted), or if another account committed first; `outcomeUnknown` if the record must be
    ///   read and compared before a retry.
    package func commit(_ values: [FieldValue], before deadline: WriteDeadline) async throws(BackendError) -> Record {
        try await client.commit(id, values, before: deadline)
    }

    /// Ends the session without saving.
    package func revert() async throws(BackendError) { try await client.revert(id) }
}
