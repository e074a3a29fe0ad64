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

/// An object as PostgreSQL holds it.
public enum StoredObject: Equatable, Sendable {
    /// The object's fields as JSON.
    case live(fields: [UInt8])
    /// The object was deleted.
    case tombstone
}

/// What a mutation does to its object, decided by ``MutationRules``.
public enum MutationDecision: Equatable, Sendable {
    /// What is written when a mutation is accepted.
    public enum Change: Equatable, Sendable {
        /// A new object with these fields.
        case insert(fields: [UInt8])
        /// These fields replace the object's own of the same names; `null` is stored.
        case merge(fields: [UInt8])
        /// The object becomes a tombstone at once.
        case tombstone
        /// `deleteRequested` becomes true; the submitter asks the back end and then deletes the object.
        case requestDeletion
        /// Nothing: it is as the mutation wants it.
        case none
    }

    /// The device is told `accepted`.
    case accept(Change)
    /// The device is told `rejected` with this problem; the mutations behind it are not held up.
    case reject(MutationProblem)
}
