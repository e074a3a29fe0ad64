/// The supported part of JSON Schema (draft 2020-12), compiled.
///
/// The keywords are those of ``keywords``; ``annotations`` do not affect values. `format` is asserted. `$ref` is not
/// supported, so that a schema is not recursive.
package struct ValueSchema: Equatable, Sendable {
    /// A type of JSON values. Whole numbers are both an `integer` and a `number`.
    package enum ValueType: String, CaseIterable, Sendable {
        case null, boolean, integer, number, string, array, object
    }

    /// A format that texts must have.
    package enum Format: String, CaseIterable, Sendable {
        /// RFC 3339: `2026-11-27`.
        case date
        /// RFC 3339: `2026-11-27T18:49:06Z`.
        case dateTime = "date-time"
        /// RFC 4122, in lower or upper case.
        case uuid
    }

    /// A field of an object.
    package struct Property: Equatable, Sendable {
        package let name: String
        package let schema: ValueSchema
    }

    /// The members that `properties` does not name.
    package enum Additional: Equatable, Sendable {
        case allowed
        case refused
        case matching([ValueSchema])
    }

    /// Permitted types; `nil`: all.
    package var types: Set<ValueType>?
    /// Permitted values; `nil`: all. `const` is a list of one.
    package var values: [SchemaValue]?
    package var format: Format?
    package var pattern: Pattern?
    package var lengthMin: Int64?
    package var lengthMax: Int64?
    package var minimum: SchemaValue?
    package var maximum: SchemaValue?
    /// The schema of a list's elements; at most one.
    package var items: [ValueSchema] = []
    package var countMax: Int64?
    package var properties: [Property] = []
    package var required: [String] = []
    package var additional = Additional.allowed
    /// The target of a reference: a kind of the file, a built-in kind, or `image`. Not a keyword of JSON Schema.
    package var reference: String?
    /// Whether only integrations write it.
    package var isReadOnly = false

    /// The value of `references` for an image.
    package static let imageReference = "image"

    /// The keywords that affect values.
    package static let keywords = [
        "type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "items",
        "maxItems", "properties", "required", "additionalProperties", "references", "readOnly",
    ]
    /// Keywords that are kept for readers only.
    package static let annotations = ["title", "description", "default", "examples", "deprecated", "$comment"]

    /// Returns a property's schema.
    package func property(_ name: String) -> ValueSchema? { properties.first { $0.name == name }?.schema }

    // MARK: Validation

    /// Returns the first problems of a value, in its order.
    ///
    /// - Parameter countMax: The maximum number of problems.
    package func problems(of value: SchemaValue, countMax: Int = 10) -> [SchemaProblem] {
        var problems: [SchemaProblem] = []
        check(value, "", countMax, &problems)
        return problems
    }

    private func check(_ value: SchemaValue, _ path: String, _ limit: Int, _ problems: inout [SchemaProblem]) {
        guard problems.count < limit else { return }
        if let types, !types.contains(where: { value.has($0) }) {
            let names = ValueType.allCases.filter(types.contains).map(\.rawValue).joined(separator: " or ")
            problems.append(SchemaProblem(path, "must be \(names), not \(value.typeName)"))
            return
        }
        if let values, !values.contains(value) {
            let shown = values.prefix(10).map(\.json).joined(separator: ", ") + (values.count > 10 ? ", …" : "")
            problems.append(SchemaProblem(path, values.count == 1 ? "must be \(shown)" : "must be one of \(shown)"))
        }
        switch value {
        case .null, .bool: break
        case .integer, .number: checkNumber(value, path, &problems)
        case .text(let text): check(text, path, &problems)
        case .list(let values):
            if let countMax, values.count > countMax {
                problems.append(SchemaProblem(path, "has \(values.count) elements; at most \(countMax) are allowed"))
            }
            guard let items = items.first else { return }
            for (index, value) in values.enumerated() {
                items.check(value, SchemaProblem.path(path, index), limit, &problems)
            }
        case .object(let members): check(members, path, limit, &problems)
        }
    }

    private func checkNumber(_ value: SchemaValue, _ path: String, _ problems: inout [SchemaProblem]) {
        if let minimum, value.compared(to: minimum) == .below {
            problems.append(SchemaProblem(path, "must be at least \(minimum.json)"))
        }
        if let maximum, value.compared(to: maximum) == .above {
            problems.append(SchemaProblem(path, "must be at most \(maximum.json)"))
        }
    }

    private func check(_ text: String, _ path: String, _ problems: inout [SchemaProblem]) {
        let length = Int64(text.unicodeScalars.count)
        if let lengthMin, length < lengthMin {
            problems.append(SchemaProblem(path, "has \(length) characters; at least \(lengthMin) are needed"))
        }
        if let lengthMax, length > lengthMax {
            problems.append(SchemaProblem(path, "has \(length) characters; at most \(lengthMax) are allowed"))
            return
        }
        if let format, !format.accepts(text) {
            problems.append(SchemaProblem(path, "must be a \(format.rawValue), such as \(format.example)"))
        }
        if let pattern, !pattern.matches(text) {
            problems.append(SchemaProblem(path, "must match the pattern \(pattern.text)"))
        }
    }

    private func check(
        _ members: [SchemaValue.Member], _ path: String, _ limit: Int, _ problems: inout [SchemaProblem]
    ) {
        for name in required where !members.contains(where: { $0.name == name }) {
            problems.append(SchemaProblem(path, "needs '\(name)'"))
        }
        for member in members where problems.count < limit {
            let location = SchemaProblem.path(path, member.name)
            if let schema = property(member.name) {
                schema.check(member.value, location, limit, &problems)
                continue
            }
            switch additional {
            case .allowed: break
            case .matching(let schemas):
                for schema in schemas { schema.check(member.value, location, limit, &problems) }
            case .refused:
                let names = properties.map(\.name).joined(separator: ", ")
                problems.append(SchemaProblem(location, "is unknown; allowed are: \(names)"))
            }
        }
    }
}

extension SchemaValue {
    func has(_ type: ValueSchema.ValueType) -> Bool {
        switch (type, self) {
        case (.null, .null), (.boolean, .bool), (.integer, .integer), (.number, .integer), (.number, .number),
            (.string, .text), (.array, .list), (.object, .object):
            true
        // A whole number beyond 64 bits.
        case (.integer, .number(let number)): number == number.rounded()
        default: false
        }
    }

    fileprivate var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer: "an integer"
        case .number: "a number"
        case .text: "a string"
        case .list: "an array"
        case .object: "an object"
        }
    }
}
