/// Why a device's mutation is rejected: a code for programs and a sentence for people.
struct MutationProblem: Error, Equatable, Sendable {
    /// What sort of problem it is; part of the problem's `type` in the device API, so never renamed.
    enum Code: String, Codable, CaseIterable, Sendable {
        /// The fields are not JSON that can be stored.
        case invalidJSON = "invalid-json"
        /// The fields are larger than ``Kind/fieldsBytesMax``.
        case tooLarge = "too-large"
        /// The caller may not write to the realm.
        case realmNotPermitted = "realm-not-permitted"
        /// The caller may not write such an object there.
        case kindNotAllowed = "kind-not-allowed"
        /// The caller may write the object, but not do this with it.
        case operationNotAllowed = "operation-not-allowed"
        /// The kind has no such field.
        case unknownField = "unknown-field"
        /// The field belongs to the server, or to somebody else.
        case fieldNotAllowed = "field-not-allowed"
        /// The field's value has not the shape it needs.
        case invalidField = "invalid-field"
        /// Another team has this name.
        case nameTaken = "name-taken"
        /// A put or patch without fields, or a delete with some.
        case fieldsMismatch = "fields-mismatch"
        /// The entry's status cannot become what the device wants.
        case statusNotAllowed = "status-not-allowed"
        /// The object has changed since its writer saw it.
        case positionPassed = "position-passed"
        /// There is no such object to patch.
        case unknownObject = "unknown-object"
        /// The object was deleted; its id is not used again.
        case deleted = "deleted"
        /// The object's deletion is under way.
        case deletionPending = "deletion-pending"
        /// The entry is recorded, or the command handed in: nothing changes it any more.
        case closed = "closed"
        /// The stored object cannot be understood by this version.
        case unreadable = "unreadable"
    }

    /// What sort of problem it is.
    let code: Code
    /// What is wrong and what would be right, naming the field.
    let detail: String

    /// A problem.
    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
