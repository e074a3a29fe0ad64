import HTTPServer
import HTTPTypes

/// The result of a mutation: the object's position if it was accepted, or the reason for the rejection.
typealias MutationResult = Result<Int64, Rejection>

/// The problem of a rejected mutation, as the device gets it and as it is stored for retries.
struct Rejection: Error, Sendable, Equatable {
    /// RFC 9457 problem as JSON.
    let problem: [UInt8]
}

extension Rejection {
    init(_ problem: MutationProblem) {
        self.init(
            problem: Problem(
                .unprocessableContent, name: problem.code.rawValue, title: "Mutation rejected", detail: problem.detail
            ).json)
    }
}

/// The reason for rejecting a device's mutation: a code for programs and a sentence for people.
struct MutationProblem: Error, Equatable, Sendable {
    /// The kind of problem; part of the problem's `type` in the device API, so never renamed.
    enum Code: String, Codable, CaseIterable, Sendable {
        /// The mutation has an unknown, missing or invalid member.
        case malformedMutation = "malformed-mutation"
        /// There is no such kind of object.
        case unknownKind = "unknown-kind"
        /// The fields, or the mutation, are not valid JSON.
        case invalidJSON = "invalid-json"
        /// The fields exceed ``Kind/fieldsBytesMax``.
        case tooLarge = "too-large"
        /// The caller may not write to the realm.
        case realmNotPermitted = "realm-not-permitted"
        /// The caller may not write objects of this kind in the realm.
        case kindNotAllowed = "kind-not-allowed"
        /// The caller may write the object, but not with this operation.
        case operationNotAllowed = "operation-not-allowed"
        /// The kind has no such field.
        case unknownField = "unknown-field"
        /// The field belongs to the server or to another writer.
        case fieldNotAllowed = "field-not-allowed"
        /// The field's value has an invalid format.
        case invalidField = "invalid-field"
        /// Another team has this name.
        case nameTaken = "name-taken"
        /// A put or patch without fields, or a delete with fields.
        case fieldsMismatch = "fields-mismatch"
        /// The device may not set this status, or not now.
        case statusNotAllowed = "status-not-allowed"
        /// The object has changed since its writer read it.
        case versionConflict = "version-conflict"
        /// The object to patch does not exist.
        case unknownObject = "unknown-object"
        /// The object was deleted; its id cannot be reused.
        case deleted = "deleted"
        /// The object's deletion is in progress.
        case deletionPending = "deletion-pending"
        /// The entry is recorded, or the command submitted: it cannot be changed.
        case closed = "closed"
        /// The stored object was written by a newer release.
        case unreadable = "unreadable"
        /// The database rejects a value.
        case dataRefused = "data-refused"
        /// The mutation was processed before, and its result is no longer stored.
        case resultExpired = "result-expired"
    }

    let code: Code
    /// The field, its error, and what is allowed.
    let detail: String

    init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}
