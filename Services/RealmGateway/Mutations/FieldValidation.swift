import Essentials
import Model

/// Validates the size and format of the fields in a mutation.
enum FieldValidation {
    /// Validates the fields of a put or patch. ``Permissions`` decides whether the caller may write them.
    ///
    /// - Returns: The parsed fields; those of a person's entry in their stored form.
    /// - Throws: The first ``MutationProblem``.
    static func check(_ fields: [UInt8], of kind: Kind, by writer: Writer) throws(MutationProblem) -> JSONObject {
        try checkSize(fields.count, of: kind, "the fields have")
        let object: JSONObject
        do { object = try JSONObject(fields) } catch {
            throw MutationProblem(.invalidJSON, "fields: \(error)")
        }
        if kind == .timeEntry, case .person = writer {
            for member in object.members {
                guard let needed = EntryField(rawValue: member.key)?.objection(to: object.bytes[member.value]) else {
                    continue
                }
                throw MutationProblem(.invalidField, "'\(member.key)' must be \(needed)")
            }
            // A person's entry may be incomplete: each given field is validated on its own.
            do { return try kind.checked(object) } catch {
                throw MutationProblem(.invalidField, "this is not a \(kind.rawValue): \(error)")
            }
        }
        return object
    }

    static func checkSize(_ count: Int, of kind: Kind, _ what: String) throws(MutationProblem) {
        let bytesMax = kind.fieldsBytesMax
        guard count <= bytesMax else {
            throw MutationProblem(.tooLarge, "\(what) \(count) bytes; at most \(bytesMax) are allowed")
        }
    }
}
