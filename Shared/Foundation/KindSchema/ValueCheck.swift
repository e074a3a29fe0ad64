/// Validates one value, and collects a limited number of problems.
struct ValueCheck {
    /// A location in the value. Its text is made for problems only.
    private indirect enum Location {
        case root
        case member(Location, String)
        case element(Location, Int)

        var path: String {
            switch self {
            case .root: ""
            case .member(let parent, let name): SchemaProblem.path(parent.path, name)
            case .element(let parent, let index): SchemaProblem.path(parent.path, index)
            }
        }
    }

    private let countMax: Int
    private var problems: [SchemaProblem] = []

    private init(countMax: Int) { self.countMax = countMax }

    static func problems(of value: SchemaValue, _ schema: ValueSchema, countMax: Int) -> [SchemaProblem] {
        var check = ValueCheck(countMax: countMax)
        check.check(value, schema, .root)
        return check.problems
    }

    private var isFull: Bool { problems.count >= countMax }

    private mutating func report(_ location: Location, _ text: @autoclosure () -> String) {
        if !isFull { problems.append(SchemaProblem(location.path, text())) }
    }

    private mutating func check(_ value: SchemaValue, _ schema: ValueSchema, _ location: Location) {
        if isFull { return }
        if let types = schema.types, !types.contains(where: { value.has($0) }) {
            let names = ValueSchema.ValueType.allCases.filter(types.contains).map(\.rawValue)
            return report(location, "must be \(names.joined(separator: " or ")), not \(value.typeName)")
        }
        if let values = schema.values, !values.contains(value) {
            let shown = values.prefix(10).map(\.json).joined(separator: ", ") + (values.count > 10 ? ", …" : "")
            report(location, values.count == 1 ? "must be \(shown)" : "must be one of \(shown)")
        }
        switch value {
        case .null, .bool: break
        case .integer, .large, .number: checkNumber(value, schema, location)
        case .text(let text): check(text, schema, location)
        case .list(let values): check(values, schema, location)
        case .object(let members): check(members, schema, location)
        }
    }

    private mutating func checkNumber(_ value: SchemaValue, _ schema: ValueSchema, _ location: Location) {
        if let minimum = schema.minimum, value.compared(to: minimum) == .below {
            report(location, "must be at least \(minimum.json)")
        }
        if let maximum = schema.maximum, value.compared(to: maximum) == .above {
            report(location, "must be at most \(maximum.json)")
        }
    }

    private mutating func check(_ text: String, _ schema: ValueSchema, _ location: Location) {
        let length = Int64(text.unicodeScalars.count)
        if let lengthMin = schema.lengthMin, length < lengthMin {
            report(location, "has \(length) characters; at least \(lengthMin) are needed")
        }
        if let lengthMax = schema.lengthMax, length > lengthMax {
            return report(location, "has \(length) characters; at most \(lengthMax) are allowed")
        }
        if let format = schema.format, !format.accepts(text) {
            report(location, "must be a \(format.rawValue), such as \(format.example)")
        }
        if let pattern = schema.pattern, !pattern.matches(text) {
            report(location, "must match the pattern \(pattern.text)")
        }
    }

    private mutating func check(_ values: [SchemaValue], _ schema: ValueSchema, _ location: Location) {
        if let countMax = schema.countMax, values.count > countMax {
            report(location, "has \(values.count) elements; at most \(countMax) are allowed")
        }
        guard let items = schema.items.first else { return }
        for (index, value) in values.enumerated() where !isFull { check(value, items, .element(location, index)) }
    }

    private mutating func checkRequired(
        _ members: [SchemaValue.Member], _ schema: ValueSchema, _ location: Location
    ) {
        // A set costs more than it saves for the few members of most objects.
        let names = members.count > 16 ? Set(members.map { ScalarText($0.name) }) : nil
        for name in schema.required {
            let isThere =
                names?.contains(ScalarText(name)) ?? members.contains { $0.name.utf8.elementsEqual(name.utf8) }
            if !isThere { report(location, "needs '\(name)'") }
        }
    }

    private mutating func check(_ members: [SchemaValue.Member], _ schema: ValueSchema, _ location: Location) {
        checkRequired(members, schema, location)
        for member in members where !isFull {
            let own = Location.member(location, member.name)
            if let property = schema.property(member.name) {
                check(member.value, property, own)
                continue
            }
            switch schema.additional {
            case .allowed: break
            case .matching(let schemas): for schema in schemas { check(member.value, schema, own) }
            case .refused:
                let names = schema.properties.map(\.name).joined(separator: ", ")
                report(own, "is unknown; allowed are: \(names)")
            }
        }
    }
}

extension SchemaValue {
    func has(_ type: ValueSchema.ValueType) -> Bool {
        switch (type, self) {
        case (.null, .null), (.boolean, .bool), (.integer, .integer), (.integer, .large), (.number, .integer),
            (.number, .large), (.number, .number), (.string, .text), (.array, .list), (.object, .object):
            true
        default: false
        }
    }

    fileprivate var typeName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer, .large: "an integer"
        case .number: "a number"
        case .text: "a string"
        case .list: "an array"
        case .object: "an object"
        }
    }
}
