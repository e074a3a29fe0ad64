import Essentials

/// Translates the schemas of an app that used Realm: those that App Services exports, and Realm's own.
///
/// App Services: a JSON Schema with `bsonType` for each collection (`schema.json`), and its links
/// (`relationships.json`). Realm: a list of classes as in its JavaScript SDK (`name`, `primaryKey`, `properties`).
package struct RealmSchemaImport: Sendable {
    /// A statement about a class or a field.
    package struct Note: Equatable, Sendable {
        /// The class, and the field's path in it, as in the source.
        package let source: String
        /// Whether a person must decide, because Fieldpost has no equal.
        package let isDecision: Bool
        package let text: String
    }

    /// A class of the source.
    struct Source {
        var name: String
        /// The properties in the form of App Services.
        var schema: SchemaValue
        /// The links: the field's path, and the class of the target.
        var links: [String: String] = [:]
        var isEmbedded = false
    }

    private var sources: [Source] = []
    package private(set) var notes: [Note] = []
    /// The names of the kinds, by those of the classes.
    private var kindNames: [String: String] = [:]
    /// The embedded classes that are being translated, from the outermost one.
    private var embedding: [String] = []
    /// The names of kinds, in lower case.
    private var usedNames: Set<String> = []
    /// The number of fields of the current kind, with embedded ones.
    private var propertyCount = 0

    /// The names of the built-in kinds.
    private let builtIn: [String]

    package init(builtIn: [String]) { self.builtIn = builtIn }

    /// Adds a schema of App Services.
    ///
    /// - Parameter relationships: The content of `relationships.json`.
    package mutating func add(schema: SchemaValue, relationships: SchemaValue? = nil) throws(SchemaProblem) {
        guard schema["bsonType"]?.text == "object" || schema["properties"]?.members != nil else {
            throw SchemaProblem("", "is no schema of App Services: it has no 'properties'")
        }
        guard let name = schema["title"]?.text else { throw SchemaProblem("/title", "is missing") }
        var source = Source(name: name, schema: schema)
        for member in relationships?.members ?? [] {
            guard let target = member.value["ref"]?.text?.split(separator: "/").last else {
                throw SchemaProblem(SchemaProblem.path("", member.name), "has no 'ref'")
            }
            source.links[member.name] = String(target)
        }
        try append(source, at: "/title")
    }

    private mutating func append(_ source: Source, at path: String) throws(SchemaProblem) {
        guard !sources.contains(where: { $0.name == source.name }) else {
            throw SchemaProblem(path, "has the class \(source.name.excerpt) a second time")
        }
        sources.append(source)
    }

    /// Adds the classes of a local Realm.
    package mutating func add(classes: SchemaValue) throws(SchemaProblem) {
        guard let list = classes.values else { throw SchemaProblem("", "must be a list of classes") }
        for (index, value) in list.enumerated() {
            let path = SchemaProblem.path("", index)
            guard let name = value["name"]?.text else { throw SchemaProblem(path + "/name", "is missing") }
            guard let properties = value["properties"]?.members else {
                throw SchemaProblem(path + "/properties", "must be an object")
            }
            var source = Source(name: name, schema: .null, isEmbedded: value["embedded"] == .bool(true))
            if value["asymmetric"] == .bool(true) {
                decide(name, "was written only; consider 'topic', and an integration that reads it")
            }
            let primaryKey = value["primaryKey"]?.text
            var translated: [SchemaValue.Member] = []
            var required: [SchemaValue] = []
            for property in properties {
                if property.name == primaryKey {
                    translated.append(.init("_id", .object([.init("bsonType", .text("uuid"))])))
                    if property.name != "_id" { note(name, property.name, "is the object's id") }
                    continue
                }
                guard let form = RealmProperty(property.value) else {
                    throw SchemaProblem(SchemaProblem.path(path + "/properties", property.name), "has no 'type'")
                }
                if let target = form.target { source.links[property.name] = target }
                guard let schema = form.schema else {
                    note(name, property.name, "is left out: the objects of \(form.target ?? "the class") have the link")
                    continue
                }
                translated.append(.init(property.name, schema))
                if !form.isOptional { required.append(.text(property.name)) }
            }
            source.schema = .object([.init("properties", .object(translated)), .init("required", .list(required))])
            try append(source, at: path + "/name")
        }
    }

    private mutating func note(_ name: String, _ field: String, _ text: String) {
        notes.append(Note(source: "\(name).\(field)", isDecision: false, text: text))
    }

    private mutating func decide(_ source: String, _ text: String) {
        notes.append(Note(source: source, isDecision: true, text: text))
    }

    // MARK: Translation

    /// Returns the content of a schema file. ``notes`` then has all statements.
    package mutating func file() -> SchemaValue {
        for source in sources where !source.isEmbedded { kindNames[source.name] = kindName(source.name) }
        var kinds: [SchemaValue.Member] = []
        for source in sources where !source.isEmbedded {
            let name = kindNames[source.name] ?? source.name
            propertyCount = 0
            decide(source.name, "choose the realms and permissions; the file has the owner's")
            let fields = object(source.schema, of: source, path: "", depth: 0)
            var members: [SchemaValue.Member] = [.init("realms", .list([.text("user")]))]
            members += fields.members?.filter { ["properties", "required"].contains($0.name) } ?? []
            members.append(
                .init(
                    "permissions",
                    .list([
                        .object([
                            .init("who", .list([.text("owner")])),
                            .init("may", .list([.text("create"), .text("change"), .text("delete")])),
                        ])
                    ])))
            kinds.append(.init(name, .object(members)))
        }
        return .object([.init("kinds", .object(kinds))])
    }

    private mutating func kindName(_ name: String) -> String {
        var letters = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        letters = String(letters.drop { !$0.isLetter }.prefix(56))
        var kind = letters.prefix(1).uppercased() + letters.dropFirst()
        if kind.isEmpty { kind = "Class" }
        if builtIn.contains(where: { $0.lowercased() == kind.lowercased() }) {
            decide(name, "Fieldpost has the kind \(kind) itself: use that, or keep the new kind App\(kind)")
            kind = "App" + kind
        }
        kind = Self.unused(kind, &usedNames)
        if kind != name { notes.append(Note(source: name, isDecision: false, text: "is the kind \(kind)")) }
        return kind
    }

    private func fieldName(_ name: String) -> String {
        var letters = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        letters = String(letters.drop { !$0.isLetter }.prefix(58))
        let field = letters.prefix(1).lowercased() + letters.dropFirst()
        return field.isEmpty ? "field" : field.lowercased() == "id" ? "externalId" : field
    }

    /// Returns a name that is not used yet, also not with other capital letters, by appending a number.
    private static func unused(_ name: String, _ used: inout Set<String>) -> String {
        var (candidate, number) = (name, 2)
        while !used.insert(candidate.lowercased()).inserted {
            candidate = "\(name)\(number)"
            number += 1
        }
        return candidate
    }

    private mutating func object(
        _ schema: SchemaValue, of source: Source, path: String, depth: Int
    ) -> SchemaValue {
        let required = Set(schema["required"]?.values?.compactMap(\.text) ?? [])
        var properties: [SchemaValue.Member] = []
        var needed: [SchemaValue] = []
        var used: Set<String> = []
        for member in schema["properties"]?.members ?? [] {
            let location = path.isEmpty ? member.name : "\(path).\(member.name)"
            if depth == 0, member.name == "_id" {
                if !["uuid", nil].contains(member.value["bsonType"]?.text) {
                    note(source.name, "_id", "is the object's id: convert it to a UUID, for example of version 5")
                }
                continue
            }
            if depth == 0, member.name.hasPrefix("_partition") {
                decide("\(source.name).\(location)", "is left out: its value selects the realm of the object")
                continue
            }
            propertyCount += 1
            guard propertyCount <= KindDeclaration.propertyCountMax else {
                decide(source.name, "has more than \(KindDeclaration.propertyCountMax) fields, with embedded ones")
                break
            }
            let name = depth == 0 ? Self.unused(fieldName(member.name), &used) : member.name
            if name != member.name { note(source.name, location, "is the field \(name)") }
            let isRequired = required.contains(member.name)
            let value = field(member.value, of: source, path: location, depth: depth + 1, isOptional: !isRequired)
            properties.append(.init(name, value))
            if isRequired { needed.append(.text(name)) }
        }
        var members: [SchemaValue.Member] = [.init("type", .text("object")), .init("properties", .object(properties))]
        if !needed.isEmpty { members.append(.init("required", .list(needed))) }
        if depth > 0 { members.append(.init("additionalProperties", .bool(false))) }
        return .object(members)
    }

    private mutating func field(
        _ schema: SchemaValue, of source: Source, path: String, depth: Int, isOptional: Bool
    ) -> SchemaValue {
        let location = "\(source.name).\(path)"
        guard depth <= 8 else {
            decide(location, "is nested too deep; any value is allowed")
            return .object([])
        }
        if let target = source.links[path] { return link(target, schema, of: source, path, depth, isOptional) }
        let type = schema["bsonType"]?.text ?? (schema["properties"] == nil ? "mixed" : "object")
        func typed(_ name: String, _ rest: [SchemaValue.Member] = []) -> SchemaValue {
            let type: SchemaValue = isOptional ? .list([.text(name), .text("null")]) : .text(name)
            return .object([.init("type", type)] + rest)
        }
        switch type {
        case "string": return typed("string")
        case "bool": return typed("boolean")
        case "int", "long": return typed("integer")
        case "double", "float", "number": return typed("number")
        case "decimal":
            decide(location, "is a decimal number: JSON numbers lose digits; a string keeps them")
            return typed("string")
        case "date": return typed("string", [.init("format", .text("date-time"))])
        case "objectId", "uuid":
            if type == "objectId" { note(source.name, path, "is a UUID: convert it as the objects' ids") }
            return typed("string", [.init("format", .text("uuid"))])
        case "binData":
            decide(location, "has bytes: an image or PDF is uploaded, and the field has its id; others need a store")
            return typed("string", [.init("format", .text("uuid")), .init("references", .text("image"))])
        case "array":
            if schema["uniqueItems"] == .bool(true) {
                decide(location, "was a set: a list may have a value twice, and the last writer of the list wins")
            }
            let items = schema["items"] ?? .object([])
            return typed(
                "array", [.init("items", element(items, of: source, path: path, depth: depth + 1))])
        case "object":
            if let values = schema["additionalProperties"], values.members != nil {
                note(source.name, path, "is an object whose members have one form")
                let value = element(values, of: source, path: path, depth: depth + 1)
                return typed("object", [.init("additionalProperties", value)])
            }
            let members = object(schema, of: source, path: path, depth: depth).members ?? []
            return typed("object", members.filter { $0.name != "type" })
        default:
            decide(location, "may have any value (\(type)): limit it, if apps rely on a form")
            return .object([])
        }
    }

    /// Translates the elements of a list or the values of an object.
    private mutating func element(
        _ schema: SchemaValue, of source: Source, path: String, depth: Int
    ) -> SchemaValue {
        field(
            schema, of: source, path: path, depth: depth, isOptional: schema[RealmProperty.nullable] == .bool(true))
    }

    private mutating func link(
        _ target: String, _ schema: SchemaValue, of source: Source, _ path: String, _ depth: Int, _ isOptional: Bool
    ) -> SchemaValue {
        let isList = schema["bsonType"]?.text == "array"
        let isMap = schema["additionalProperties"]?.members != nil
        func contained(_ value: SchemaValue, _ isOptional: Bool) -> SchemaValue {
            func type(_ name: String) -> SchemaValue.Member {
                .init("type", isOptional ? .list([.text(name), .text("null")]) : .text(name))
            }
            if isList { return .object([type("array"), .init("items", value)]) }
            if isMap { return .object([type("object"), .init("additionalProperties", value)]) }
            return value
        }
        if let embedded = sources.first(where: { $0.name == target && $0.isEmbedded }) {
            guard !embedding.contains(target) else {
                decide("\(source.name).\(path)", "contains objects of its own class; any value is allowed")
                return contained(.object([]), isOptional)
            }
            embedding.append(target)
            defer { embedding.removeLast() }
            var value = object(embedded.schema, of: embedded, path: "", depth: depth + 1)
            if isOptional, !isList, !isMap, let members = value.members {
                value = .object(
                    members.map { member in
                        member.name == "type" ? .init("type", .list([.text("object"), .text("null")])) : member
                    })
            }
            return contained(value, isOptional)
        }
        var members: [SchemaValue.Member] = []
        let isSingle = !isList && !isMap
        members.append(
            .init("type", isOptional && isSingle ? .list([.text("string"), .text("null")]) : .text("string")))
        members.append(.init("format", .text("uuid")))
        if let kind = kindNames[target] {
            members.append(.init("references", .text(kind)))
        } else {
            decide("\(source.name).\(path)", "links to \(target), whose schema is missing")
        }
        return contained(.object(members), isOptional)
    }
}
