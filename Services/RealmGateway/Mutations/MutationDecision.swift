/// An object as PostgreSQL holds it.
enum StoredObject: Equatable, Sendable {
    /// The object's fields as JSON.
    case live(fields: [UInt8])
    /// The object was deleted.
    case tombstone
}

/// What a mutation does to its object, decided by ``MutationRules``.
enum MutationDecision: Equatable, Sendable {
    /// What is written when a mutation is accepted.
    enum Change: Equatable, Sendable {
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
