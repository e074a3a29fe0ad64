package import Essentials

extension Kind {
    /// The names of the kind's fields. A golden file says the same.
    public var fieldNames: [String] { row.fieldNames }

    /// The largest fields of an object of any kind, in bytes of JSON.
    public static let fieldsBytesMax = 65_536
    /// The largest fields of an object that everybody of an environment holds.
    public static let commonBytesMax = 4096

    /// The most bytes that the fields of an object of this kind may have.
    public var fieldsBytesMax: Int { row.fieldsBytesMax }

    /// Why these fields are not those of an object of this kind; `nil` when they are.
    public func objection(to fields: [UInt8]) -> String? {
        do {
            _ = try checked(try JSONObject(fields))
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Checks the fields of an object of this kind: their forms, and what they must be together. Names of fields that
    /// the kind does not have are the caller's to refuse.
    ///
    /// - Returns: The fields in the form in which they are stored: ids in lower case, whole numbers without a point and
    ///   an exponent. All else is as it was given.
    /// - Throws: ``FieldObjection``, the first one found.
    package func checked(_ fields: JSONObject) throws(FieldObjection) -> JSONObject {
        try Self.checked(fields, as: row.fields)
    }

    /// Checks the fields of an object after some of them were given: these, and that no required field is missing. What
    /// was stored before in a form that is refused today does not block writes of other fields.
    ///
    /// - Parameter given: The names of the fields that are written now.
    /// - Returns: As ``checked(_:)``, except that stored fields that are refused today are missing, or substituted.
    package func checked(_ fields: JSONObject, given: Set<String>) throws(FieldObjection) -> JSONObject {
        var rest = fields
        var refusalCounts: [String: Int] = [:]
        while true {
            do throws(FieldObjection) {
                return try checked(rest)
            } catch {
                guard let field = error.field, !given.contains(field), fields.value(of: field) != nil,
                    case let count = refusalCounts[field, default: 0], count < Self.substitutes.count,
                    let others = try? rest.replacing(field, by: Self.substitutes[count])
                else { throw error }
                refusalCounts[field] = count + 1
                rest = others
            }
        }
    }

    /// Values to check with instead of a refused one: none; if the field is required, a name and address, or a number.
    private static let substitutes: [String?] = [nil, "\"x@example.com\"", "0"]

    private static func checked<Fields: KindFields>(
        _ fields: JSONObject, as type: Fields.Type
    ) throws(FieldObjection) -> JSONObject {
        let notes = FieldsReader.Notes()
        let objection: String?
        do {
            objection = try Fields(from: FieldsReader(fields, notes)).objection
        } catch let problem as FieldProblem {
            throw problem.objection
        } catch {
            throw FieldObjection("it cannot be read")
        }
        if let objection { throw FieldObjection(objection) }
        if notes.edits.isEmpty { return fields }
        var stored: [UInt8] = []
        var offset = 0
        for (range, text) in notes.edits.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            stored += fields.bytes[offset..<range.lowerBound] + Array(text.utf8)
            offset = range.upperBound
        }
        do { return try JSONObject(stored + fields.bytes[offset...]) } catch { throw FieldObjection("\(error)") }
    }
}

extension JSONObject {
    /// The object with another value of a member; `nil`: without the member.
    fileprivate func replacing(_ key: String, by value: String?) throws -> JSONObject {
        guard let value else { return try JSONObject(removing(key)) }
        return try JSONObject(merging(JSONObject(Array("{\"\(key)\":\(value)}".utf8))))
    }
}
