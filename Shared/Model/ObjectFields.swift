package import Essentials

extension Kind {
    /// The names of the kind's fields; a golden file lists the same names.
    public var fieldNames: [String] { row.fieldNames }

    /// Maximum size of the fields of an object of any kind, in bytes of JSON.
    public static let fieldsBytesMax = 65_536
    /// Maximum size of the fields of an object that all people of an environment synchronise, in bytes of JSON.
    public static let commonBytesMax = 4096

    /// Maximum size of the fields of an object of this kind, in bytes of JSON.
    public var fieldsBytesMax: Int { row.fieldsBytesMax }

    /// Describes why the fields are invalid for this kind; `nil` if they are valid.
    public func objection(to fields: [UInt8]) -> String? {
        do {
            _ = try checked(try JSONObject(fields))
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Validates the fields of an object of this kind: each field's form and the rules that combine fields. The caller
    /// must reject names of fields that the kind does not have.
    ///
    /// - Returns: The fields as they are stored: ids in lower case, whole numbers without a decimal point or exponent,
    ///   all other values unchanged.
    /// - Throws: ``FieldObjection``, the first one detected.
    package func checked(_ fields: JSONObject) throws(FieldObjection) -> JSONObject {
        if let type = row.fields { return try Self.checked(fields, as: type) }
        if case .own(let kind) = self { try kind.check(fields) }
        return fields
    }

    /// Validates a partial write: the given fields, and that no required field is missing. A stored field that current
    /// rules reject does not block writes of other fields.
    ///
    /// - Parameter given: The names of the fields of this write.
    /// - Returns: As ``checked(_:)``, except that rejected stored fields are removed or replaced by substitutes.
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

    /// Replacements for a rejected stored value: none; for a required field, a text that is a valid name and address,
    /// or a number.
    private static let substitutes: [String?] = [nil, "\"x@example.com\"", "0"]

    private static func checked<Fields: KindFields>(
        _ fields: JSONObject, as type: Fields.Type
    ) throws(FieldObjection) -> JSONObject {
        let normalization = FieldsReader.Normalization()
        let objection: String?
        do {
            objection = try Fields(from: FieldsReader(fields, normalization)).objection
        } catch let problem as FieldProblem {
            throw problem.objection
        } catch {
            throw FieldObjection("the object cannot be decoded")
        }
        if let objection { throw FieldObjection(objection) }
        if normalization.edits.isEmpty { return fields }
        var stored: [UInt8] = []
        var offset = 0
        for (range, text) in normalization.edits.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            stored += fields.bytes[offset..<range.lowerBound] + Array(text.utf8)
            offset = range.upperBound
        }
        do { return try JSONObject(stored + fields.bytes[offset...]) } catch { throw FieldObjection("\(error)") }
    }
}

extension JSONObject {
    /// Decodes the object as `JSONDecoder` does, in less than half the time. It also throws for unknown members of some
    /// nested objects.
    package func decoded<Fields: Decodable>(as type: Fields.Type) throws -> Fields {
        try Fields(from: FieldsReader(self, FieldsReader.Normalization()))
    }

    /// Returns the object with a member replaced, or removed if `value` is `nil`.
    fileprivate func replacing(_ key: String, by value: String?) throws -> JSONObject {
        guard let value else { return try JSONObject(removing(key)) }
        return try JSONObject(merging(JSONObject(Array("{\"\(key)\":\(value)}".utf8))))
    }
}
