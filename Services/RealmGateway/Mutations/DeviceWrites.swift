import Essentials
import Model

/// Checks what a caller writes into an object: how much, and in which shape.
enum DeviceWrites {
    /// Checks the fields of a put or patch; whether the caller may write them is a matter of ``Permissions``.
    ///
    /// - Returns: The fields, split; those of a person's entry in the form in which they are stored.
    /// - Throws: ``MutationProblem``, the first one found.
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
            // An entry that a person writes may lack anything: what is given is checked by itself.
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
