import Essentials
import Model

/// What a mutation is expected to make of an object, before the server has said so.
///
/// Fields change one by one, as on the server. What only the server knows, an entry's next status say, stays as it was
/// until a checkpoint tells.
enum OptimisticRules {
    /// The object's fields after the mutation.
    ///
    /// - Parameter fields: Those before; `nil` when there is no such object.
    /// - Returns: `nil` when there is none afterwards.
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

    /// Whether a put that leaves the field out takes its value away.
    private static func isReplaced(_ field: String, of kind: Kind) -> Bool {
        guard kind.fieldNames.contains(field) else { return false }
        // A person's role is others' to write.
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

    /// An entry that a back end may know stays until the back end has deleted its record.
    private static func remains(of fields: [UInt8], _ kind: Kind) -> [UInt8]? {
        guard kind == .timeEntry, let entry = try? JSONObject(fields) else { return nil }
        let status = entry.text(of: EntryField.status.rawValue).map { EntryStatus(rawValue: $0) } ?? .draft
        let goesAtOnce =
            switch status {
            case .suggestion, .draft, .invalid: entry.text(of: EntryField.backendId.rawValue) == nil
            case .submitted, .released, .rejected, .approved, .recorded, nil: false
            }
        if goesAtOnce { return nil }
        return merged(fields, Array("{\"\(EntryField.deleteRequested.rawValue)\":true}".utf8))
    }
}
