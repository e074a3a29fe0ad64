import Essentials
import Model

/// Predicts the effect of a mutation on an object before the server has responded.
///
/// Fields change one by one, as on the server. Values that only the server determines, such as an entry's next status,
/// stay unchanged until a checkpoint.
enum OptimisticRules {
    /// Returns the object's fields after the mutation.
    ///
    /// - Parameter fields: The fields before; `nil` if the object does not exist.
    /// - Returns: `nil` if the object does not exist afterwards.
    static func fields(after mutation: Mutation, of fields: [UInt8]?) -> [UInt8]? {
        switch mutation.operation {
        case .put: replaced(fields, by: mutation)
        case .patch: fields.map { merged($0, mutation.fields) }
        case .delete: fields.flatMap { remains(of: $0, mutation.kind) }
        }
    }

    private static func replaced(_ fields: [UInt8]?, by mutation: Mutation) -> [UInt8]? {
        guard let given = mutation.fields else { return fields }
        guard let fields, let old = try? JSONObject(fields), let new = try? JSONObject(given) else { return given }
        let named = Set(new.members.map(\.key))
        let lost = old.members.map(\.key).filter { !named.contains($0) && isReplaced($0, of: mutation.kind) }
        let nulls = JSONObject.bytes(of: lost.map { ($0, Array("null".utf8)[...]) })
        return merged(merged(fields, nulls), given)
    }

    /// Whether a put without the field clears its value.
    private static func isReplaced(_ field: String, of kind: Kind) -> Bool {
        guard kind.fieldNames.contains(field) else { return false }
        // A person's role is written only by managers and admins.
        guard kind == .timeEntry else { return kind != .person || field != "role" }
        return switch EntryField(rawValue: field) {
        case .status, .submitRequested, nil: false
        case .some(let entryField): !entryField.isServerOwned
        }
    }

    private static func merged(_ fields: [UInt8], _ patch: [UInt8]?) -> [UInt8] {
        guard let patch, let old = try? JSONObject(fields), let new = try? JSONObject(patch) else { return fields }
        return old.merging(new)
    }

    /// An entry that the back end may have is kept until the back end has deleted its record.
    private static func remains(of fields: [UInt8], _ kind: Kind) -> [UInt8]? {
        guard kind == .timeEntry, let entry = try? JSONObject(fields) else { return nil }
        let status = entry.text(of: EntryField.status.rawValue).map { EntryStatus(rawValue: $0) } ?? .draft
        let isDeletedImmediately =
            switch status {
            case .suggestion, .draft, .invalid: entry.text(of: EntryField.backendId.rawValue) == nil
            case .submitted, .released, .rejected, .approved, .recorded, nil: false
            }
        if isDeletedImmediately { return nil }
        return merged(fields, Array("{\"\(EntryField.deleteRequested.rawValue)\":true}".utf8))
    }
}
