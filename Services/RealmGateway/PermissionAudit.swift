import FoundationEssentials
import Model
import Postgres
import Realms

/// Which mutations change what somebody may do, for the audit log.
enum PermissionAudit {
    /// - Parameter before: The object as it was.
    static func record(_ mutation: Mutation, before: Model.StoredObject?, _ request: MutationRequest) -> AuditRecord? {
        let old = before.flatMap { stored in
            if case .live(let fields) = stored { try? JSONObject(fields) } else { nil }
        }
        let new = mutation.fields.flatMap { try? JSONObject($0) }
        func record(_ action: AuditRecord.Action, _ subject: String, _ detail: String = "{}") -> AuditRecord {
            AuditRecord(
                actor: request.caller.name, action: action, subject: subject, detail: JSONBytes(detail),
                address: request.address)
        }
        switch (mutation.kind, mutation.operation) {
        case (.person, .put), (.person, .patch):
            guard new?.value(of: "role") != nil, let after = new.map(MutationRules.role) else { return nil }
            let earlier = old.map(MutationRules.role) ?? .worker
            guard earlier != after else { return nil }
            return record(
                .roleChanged, mutation.id.text,
                "{\"from\":\"\(earlier.rawValue)\",\"to\":\"\(after.rawValue)\"}")
        case (.person, .delete):
            return record(.roleChanged, mutation.id.text, "{\"to\":\"\(Role.worker.rawValue)\"}")
        case (.membership, .put): return record(.membershipAdded, pair(new) ?? mutation.id.text)
        case (.membership, .delete): return record(.membershipRemoved, pair(old) ?? mutation.id.text)
        case (.team, .delete): return record(.teamRemoved, mutation.id.text)
        default: return nil
        }
    }

    private static func pair(_ membership: JSONObject?) -> String? {
        guard let membership, let person = membership.text(of: "person"), let team = membership.text(of: "team")
        else { return nil }
        return "person \(person) team \(team)"
    }
}
