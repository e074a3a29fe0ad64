import Essentials

extension ValueSchema {
    /// Maximum depth of nested schemas: objects are nested at most 32 deep as JSON.
    private static let depthMax = 16
    /// Maximum length of a nested property's name, in bytes.
    private static let nameBytesMax = 200
    private static let typeSets = CaseSets(ValueType.self)
    /// Maximum number of values of an `enum`.
    private static let valueCountMax = 200

    /// Reads a schema.
    ///
    /// - Parameters:
    ///   - isField: Whether it is a field of an object, which may be `readOnly`.
    ///   - count: Is incremented for each property.
    static func read(
        _ value: SchemaValue, at path: String, depth: Int = 0, isField: Bool = false, count: inout Int
    ) -> (schema: ValueSchema, problems: [SchemaProblem]) {
        var schema = ValueSchema()
        if case .bool(true) = value { return (schema, []) }
        guard depth <= depthMax else {
            return (schema, [SchemaProblem(path, "is nested more than \(depthMax) deep")])
        }
        var reader = SchemaReader(value, path, names: keywords + annotations)
        schema.readTypes(&reader)
        schema.readValues(&reader)
        schema.readTexts(&reader)
        schema.minimum = reader.number("minimum")
        schema.maximum = reader.number("maximum")
        if let low = schema.minimum, let high = schema.maximum, low.compared(to: high) == .above {
            reader.report("minimum", "is above 'maximum'")
        }
        schema.isReadOnly = reader.flag("readOnly")
        if schema.isReadOnly, !isField { reader.report("readOnly", "is supported only for the fields of a kind") }
        schema.countMax = reader.count("maxItems")
        if let items = reader.value("items") {
            let read = read(items, at: reader.location("items"), depth: depth + 1, count: &count)
            schema.items = [read.schema]
            reader.add(read.problems)
        }
        schema.readProperties(&reader, depth, isField: depth == 0, count: &count)
        schema.checkApplicability(&reader)
        return (schema, reader.problems)
    }

    private mutating func readTypes(_ reader: inout SchemaReader) {
        guard let value = reader.value("type") else { return }
        // In YAML, null without quotes is no string.
        let names = (value.values ?? [value]).map { $0 == .null ? ValueType.null.rawValue : $0.text ?? "" }
        let found = names.compactMap(ValueType.init)
        let count = value.values?.count ?? 1
        guard !found.isEmpty, found.count == count, Set(found).count == count else {
            let list = ValueType.allCases.map(\.rawValue).joined(separator: ", ")
            reader.report("type", "must be one of \(list), or a list of several")
            return
        }
        types = Self.typeSets.set(found)
    }

    private mutating func readValues(_ reader: inout SchemaReader) {
        if let list = reader.list("enum") {
            if list.isEmpty || list.count > Self.valueCountMax {
                reader.report("enum", "must have 1 to \(Self.valueCountMax) values")
            }
            values = list
        }
        guard let value = reader.value("const") else { return }
        if values != nil { reader.report("const", "is not supported together with 'enum'") }
        values = [value]
    }

    private mutating func readTexts(_ reader: inout SchemaReader) {
        lengthMin = reader.count("minLength")
        lengthMax = reader.count("maxLength")
        if let lengthMin, let lengthMax, lengthMin > lengthMax { reader.report("minLength", "is above 'maxLength'") }
        if let name = reader.text("format") {
            format = Format(rawValue: name)
            if format == nil {
                let list = Format.allCases.map(\.rawValue).joined(separator: ", ")
                reader.report("format", "'\(name.excerpt)' is not supported; supported are: \(list)")
            }
        }
        if let text = reader.text("pattern") {
            do { pattern = try Pattern(text) } catch { reader.report("pattern", error.description) }
        }
        reference = reader.text("references")
        if reference != nil, format != .uuid { reader.report("references", "needs 'format: uuid'") }
    }

    private mutating func readProperties(
        _ reader: inout SchemaReader, _ depth: Int, isField: Bool, count: inout Int
    ) {
        if let value = reader.value("properties") {
            let path = reader.location("properties")
            if value.members == nil { reader.report("properties", "must be an object") }
            var list: [Property] = []
            for member in value.members ?? [] {
                count += 1
                guard count <= KindDeclaration.propertyCountMax else { break }
                guard member.name.utf8.count <= Self.nameBytesMax else {
                    reader.report("properties", "has a name of more than \(Self.nameBytesMax) bytes")
                    continue
                }
                let read = Self.read(
                    member.value, at: SchemaProblem.path(path, member.name), depth: depth + 1, isField: isField,
                    count: &count)
                list.append(Property(name: member.name, schema: read.schema))
                reader.add(read.problems)
            }
            setProperties(list)
        }
        required = reader.texts("required") ?? []
        if required.count > KindDeclaration.propertyCountMax {
            reader.report("required", "has more than \(KindDeclaration.propertyCountMax) names")
            required = []
        }
        switch reader.value("additionalProperties") {
        case nil, .bool(true): break
        case .bool(false): additional = .refused
        case let value?:
            let read = Self.read(value, at: reader.location("additionalProperties"), depth: depth + 1, count: &count)
            additional = .matching([read.schema])
            reader.add(read.problems)
        }
    }

    /// A keyword that can never apply is a mistake of the author.
    private func checkApplicability(_ reader: inout SchemaReader) {
        guard let types else { return }
        let needed: [(names: [String], types: Set<ValueType>, text: String)] = [
            (["minLength", "maxLength", "pattern", "format"], [.string], "string"),
            (["minimum", "maximum"], [.integer, .number], "number or integer"),
            (["items", "maxItems"], [.array], "array"),
            (["properties", "required", "additionalProperties"], [.object], "object"),
        ]
        for rule in needed where types.isDisjoint(with: rule.types) {
            for name in rule.names where reader.value(name) != nil {
                reader.report(name, "has no effect: the type is not \(rule.text)")
            }
        }
        if let values, !values.contains(where: { value in types.contains { value.has($0) } }) {
            reader.report("enum", "has no value of the type")
        }
    }
}
