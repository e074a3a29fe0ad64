public import FoundationEssentials

/// A change of an object that a device requests.
public struct Mutation: Equatable, Sendable {
    /// The operation on an object.
    public enum Operation: String, Codable, CaseIterable, Sendable {
        /// Create the object, or replace all device-owned fields of it.
        case put
        /// Replace the given fields; the last writer of a field wins.
        case patch
        /// Delete the object.
        case delete
    }

    /// The operation.
    public let operation: Operation
    /// The object's kind.
    public let kind: Kind
    /// The object's id.
    public let id: UUID
    /// The fields' JSON as the device sent it; `nil` for ``Operation/delete``.
    public let fields: [UInt8]?
    /// The expected position of the object, a precondition: if the object has another position, the mutation is not
    /// applied. 0: neither an object nor a tombstone exists. `nil`: unconditional.
    public let position: Int64?
    /// Whether a put may restore a deleted object. Without it, a put of a deleted ``Appointment`` or ``Note`` is
    /// rejected, so that a device's late edit does not undo a deletion.
    public let restores: Bool

    /// Creates a mutation.
    public init(
        operation: Operation, kind: Kind, id: UUID, fields: [UInt8]? = nil, position: Int64? = nil,
        restores: Bool = false
    ) {
        self.operation = operation
        self.kind = kind
        self.id = id
        self.fields = fields
        self.position = position
        self.restores = restores
    }
}
