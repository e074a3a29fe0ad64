public import FoundationEssentials

/// One change a device asks for.
public struct Mutation: Equatable, Sendable {
    /// What is to be done with the object.
    public enum Operation: String, Codable, CaseIterable, Sendable {
        /// Create the object, or replace all device-owned fields of it.
        case put
        /// Replace the given fields; the last writer of a field wins.
        case patch
        /// Delete the object.
        case delete
    }

    /// What is to be done.
    public let operation: Operation
    /// The object's kind.
    public let kind: Kind
    /// The object's id.
    public let id: UUID
    /// The fields' JSON as the device sent it; `nil` with ``Operation/delete``.
    public let fields: [UInt8]?
    /// The position of the object as the writer saw it: when it has another one, nothing is done. 0: there is none, nor
    /// a tombstone. `nil`: whatever it is.
    public let position: Int64?

    /// A mutation.
    public init(operation: Operation, kind: Kind, id: UUID, fields: [UInt8]? = nil, position: Int64? = nil) {
        self.operation = operation
        self.kind = kind
        self.id = id
        self.fields = fields
        self.position = position
    }
}
