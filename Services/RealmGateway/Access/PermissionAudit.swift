import Access
import Audit
import Essentials
import Model
import Postgres

/// The audit record of a mutation that changes a person's permissions or what they share.
struct PermissionAudit {
    let request: MutationRequest
    let realm: RealmPath
    let mutation: Mutation
    /// The object's fields before and after; `nil` if it does not exist.
    let before: JSONObject?
    let after: JSONObject?

    init(
        _ mutation: Mutation, in realm: RealmPath, before: StoredObject?, after: StoredObject?,
        _ request: MutationRequest
    ) {
        self.request = request
        self.realm = realm
        self.mutation = mutation
        self.before = Self.fields(before)
        self.after = Self.fields(after)
    }

    /// The record; `nil` if no permission changes.
    var record: AuditRecord? {
        switch mutation.kind.row.permissions {
        case .person:
            let (from, to) = (role(before), role(after))
            return from == to ? nil : record(.roleChanged, mutation.id.text, from: from, to: to)
        case .user:
            let (from, to) = (before?.id(of: "catalogue")?.text, after?.id(of: "catalogue")?.text)
            return from == to ? nil : record(.catalogueChanged, realm.description, from: from, to: to)
        case .membership: return record(.membershipAdded, .membershipRemoved) { Self.pair($0, "person", "team") }
        case .share:
            return record(nil, .shareRemoved) { "\(mutation.id.text) \(Self.pair($0, "owner", "recipient"))" }
        case .team: return record(nil, .teamRemoved) { _ in mutation.id.text }
        case nil: return sharing
        }
    }

    /// The record of sharing an item, of ending that, and of a recipient's removal of their copy.
    private var sharing: AuditRecord? {
        switch (mutation.kind, realm.realmClass) {
        case (.sharedItem, _): record(.itemShared, .itemUnshared) { Self.pair($0, "item", "recipient") }
        case (.appointment, .share(let share)), (.note, .share(let share)):
            record(nil, .copyRemoved) { _ in "item \(mutation.id.text) share \(share.text)" }
        default: nil
        }
    }

    private static func fields(_ stored: StoredObject?) -> JSONObject? {
        stored?.fields.flatMap { try? JSONObject($0) }
    }

    private func role(_ person: JSONObject?) -> String { (person.map(Role.init(of:)) ?? .worker).rawValue }

    /// Returns the record of a created or deleted object; `nil` if it existed before and after, or neither.
    private func record(
        _ added: AuditRecord.Action?, _ removed: AuditRecord.Action, _ subject: (JSONObject) -> String
    ) -> AuditRecord? {
        switch (before, after) {
        case (nil, let after?): added.map { record($0, subject(after)) }
        case (let before?, nil): record(removed, subject(before))
        case (nil, nil), (_?, _?): nil
        }
    }

    private func record(
        _ action: AuditRecord.Action, _ subject: String, from: String? = nil, to: String? = nil
    ) -> AuditRecord {
        let members = [("from", from), ("to", to)].compactMap { name, value in
            value.map { (key: name, value: JSONText.string($0)[...]) }
        }
        return AuditRecord(
            actor: request.caller.name, action: action, subject: subject,
            detail: JSONBytes(JSONObject.bytes(of: members)), address: request.address)
    }

    private static func pair(_ fields: JSONObject, _ first: String, _ second: String) -> String {
        [first, second].map { "\($0) \(fields.id(of: $0)?.text ?? "?")" }.joined(separator: " ")
    }
}
