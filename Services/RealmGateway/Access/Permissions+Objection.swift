import Access
import Essentials
import Model

extension Permissions {
    /// Returns the reason why a caller may not do this to an object; `nil` if they may.
    ///
    /// - Parameter fields: The names of the mutation's fields.
    static func objection(
        to operation: Mutation.Operation, _ object: WriteTarget, fields: [String], in realm: RealmClass,
        _ access: Access
    ) -> MutationProblem? {
        guard mayRead(realm, access) else {
            return MutationProblem(.realmNotPermitted, "you may not write to this realm")
        }
        guard let grant = grant(object, in: realm, access) else {
            return MutationProblem(.kindNotAllowed, "you may not write this \(object.kind.rawValue) object here")
        }
        guard grant.operations.contains(operation) else {
            return MutationProblem(
                .operationNotAllowed, "you may not \(operation.rawValue) this \(object.kind.rawValue) object")
        }
        if let field = fields.first(where: { !grant.fields.contains($0) }) {
            let list = grant.fields.joined(separator: ", ")
            guard object.kind.fieldNames.contains(field) else {
                return MutationProblem(
                    .unknownField, "\(object.kind.rawValue) has no field '\(field.excerpt)'; you may write: \(list)")
            }
            return MutationProblem(.fieldNotAllowed, "you may not write '\(field)'; you may write: \(list)")
        }
        return objectionToRole(object, access)
    }

    /// Managers can give others the roles manager and worker. Only admins can grant or revoke the role admin.
    private static func objectionToRole(_ object: WriteTarget, _ access: Access) -> MutationProblem? {
        guard object.kind == .person, let after = object.roleAfter else { return nil }
        switch access.standing {
        case .integration, .person(.admin): return nil
        case .person(.manager), .person(.worker):
            guard object.roleBefore == .admin || after == .admin else { return nil }
            return MutationProblem(.fieldNotAllowed, "'role': only an admin may grant or revoke the role admin")
        }
    }
}
