import Essentials

/// A kind that an environment declares.
package struct KindDeclaration: Equatable, Sendable {
    /// The classes of realms in which an environment's own kinds may live.
    package enum RealmName: String, CaseIterable, Sendable {
        /// `/users/{e-mail}`, `/teams/{id}`, `/common` and `/manager`.
        case user, team, common, manager
    }

    /// The people whom a permission is for. Integrations may always write.
    package enum Writer: String, CaseIterable, Sendable {
        /// The owner of a personal realm.
        case owner
        /// The members of a team, in its realm.
        case member
        /// Managers and admins, in `/manager`, `/common` and the realms of teams.
        case manager
        /// All people, in `/common`.
        case person

        /// The classes of realms in which there are such people.
        package var realms: Set<RealmName> {
            switch self {
            case .owner: [.user]
            case .member: [.team]
            case .manager: [.manager, .common, .team]
            case .person: [.common]
            }
        }
    }

    /// An act that a permission allows.
    package enum Act: String, CaseIterable, Sendable {
        /// Creates an object that does not exist.
        case create
        /// Changes fields of an existing object.
        case change
        /// Deletes an object.
        case delete
    }

    /// Allows people to write the objects of the kind.
    package struct Permission: Equatable, Sendable {
        package let writers: Set<Writer>
        package let realms: Set<RealmName>
        package let acts: Set<Act>
        /// The fields; `nil`: all except those that are read-only.
        package let fields: [String]?
    }

    /// The origin of the objects' ids.
    package enum IDs: String, CaseIterable, Sendable {
        /// The creator chooses a random id, which is not used again after a delete.
        case random
        /// The id is derived from what the object describes: a deleted object can be created again.
        case natural
    }

    /// Maximum number of a kind's properties, including nested ones.
    package static let propertyCountMax = 500
    /// Maximum size of an object's fields, in bytes of JSON, unless the declaration has another one.
    package static let bytesMaxDefault = bytesMaxRange.upperBound
    package static let bytesMaxRange: ClosedRange<Int64> = 256...65_536

    package let name: String
    package let ids: IDs
    package let realms: Set<RealmName>
    /// The objects' fields: a schema of an object.
    package let fields: ValueSchema
    package let permissions: [Permission]
    /// The name of the topic on which changes are published; `nil`: they are not published.
    package let topic: String?
    package let bytesMax: Int64

    /// The names of the fields, in the order of the declaration.
    package var fieldNames: [String] { fields.properties.map(\.name) }

    /// The fields that only integrations write.
    package var readOnlyNames: [String] { fields.properties.filter(\.schema.isReadOnly).map(\.name) }
}

extension KindDeclaration {
    static let memberNames = [
        "description", "ids", "realms", "properties", "required", "permissions", "topic", "maxBytes",
    ]

    static let namePattern = try? Pattern("^[A-Z][A-Za-z0-9]{0,62}$")
    private static let fieldPattern = try? Pattern("^[a-z][A-Za-z0-9_]{0,62}$")
    private static let topicPattern = try? Pattern("^[a-z][a-z0-9-]{0,62}$")
    /// The name of a member of the objects' own rows in the apps' databases.
    private static let reservedName = "id"

    private static let realmSets = CaseSets(RealmName.self)
    private static let writerSets = CaseSets(Writer.self)
    private static let actSets = CaseSets(Act.self)

    /// Reads the declaration of a kind.
    ///
    /// - Parameter builtIn: The names of the built-in kinds, by their lower-case forms.
    static func read(
        _ name: String, _ value: SchemaValue, at path: String, builtIn: [String: String]
    ) -> (kind: KindDeclaration, problems: [SchemaProblem]) {
        var reader = SchemaReader(value, path, names: memberNames)
        if let other = builtIn[name.lowercased()] { reader.report(nil, "Fieldpost has the kind \(other) itself") }
        _ = reader.text("description")
        let ids = reader.text("ids").map { text in
            if let ids = IDs(rawValue: text) { return ids }
            reader.report("ids", "must be random or natural")
            return .random
        }
        let realms = realmSets.set(reader.choices("realms", RealmName.self) ?? [])
        if realms.isEmpty, !reader.problems.contains(where: { $0.path == reader.location("realms") }) {
            let list = RealmName.allCases.map(\.rawValue).joined(separator: ", ")
            reader.report("realms", "must have at least one of: \(list)")
        }
        let fields = fields(&reader)
        let bytesMax = reader.count("maxBytes") ?? bytesMaxDefault
        if !bytesMaxRange.contains(bytesMax) {
            reader.report(
                "maxBytes", "must be from \(bytesMaxRange.lowerBound) to \(bytesMaxRange.upperBound)")
        }
        let topic = reader.text("topic")
        if let topic, topicPattern?.matches(topic) != true {
            reader.report(
                "topic", "must have 1 to 63 lower-case letters, digits and '-', and begin with a letter")
        }
        var permissions: [Permission] = []
        for (index, value) in (reader.list("permissions") ?? []).enumerated() {
            let read = permission(
                value, at: SchemaProblem.path(reader.location("permissions"), index), realms: realms, fields: fields)
            if let permission = read.permission { permissions.append(permission) }
            reader.add(read.problems)
        }
        return (
            KindDeclaration(
                name: name, ids: ids ?? .random, realms: realms, fields: fields, permissions: permissions,
                topic: topic, bytesMax: bytesMax), reader.problems
        )
    }

    /// The members `properties` and `required` are those of a schema of an object; it has no other fields.
    private static func fields(_ reader: inout SchemaReader) -> ValueSchema {
        let parts = ["properties", "required"].compactMap { name in
            reader.value(name).map { SchemaValue.Member(name, $0) }
        }
        var count = 0
        var read = ValueSchema.read(.object(parts), at: reader.path, count: &count)
        reader.add(read.problems)
        read.schema.types = [.object]
        read.schema.additional = .refused
        if read.schema.properties.isEmpty { reader.report("properties", "must have at least one field") }
        if count > propertyCountMax {
            reader.report("properties", "has more than \(propertyCountMax) fields, with nested ones")
        }
        var lowered: [String: String] = [:]
        for property in read.schema.properties {
            let location = SchemaProblem.path(reader.location("properties"), property.name)
            if fieldPattern?.matches(property.name) != true {
                reader.add([
                    SchemaProblem(
                        location,
                        "a field's name has 1 to 63 letters, digits and '_', and begins with a lower-case letter")
                ])
            }
            if let other = lowered.updateValue(property.name, forKey: property.name.lowercased()) {
                reader.add([SchemaProblem(location, "differs from the field \(other) only in capital letters")])
            }
            if property.name.lowercased() == reservedName {
                reader.add([SchemaProblem(location, "the name is reserved: each object has an id")])
            }
        }
        for name in read.schema.required where read.schema.property(name) == nil {
            reader.report("required", "has '\(name.excerpt)', which is not among the properties")
        }
        for name in read.schema.required where read.schema.property(name)?.isReadOnly == true {
            reader.report("required", "has '\(name)', which is read-only: no device could create an object")
        }
        return read.schema
    }

    private static func permission(
        _ value: SchemaValue, at path: String, realms: Set<RealmName>, fields: ValueSchema
    ) -> (permission: Permission?, problems: [SchemaProblem]) {
        var reader = SchemaReader(value, path, names: ["who", "realms", "may", "fields"])
        let writers = writerSets.set(reader.choices("who", Writer.self) ?? [])
        let acts = actSets.set(reader.choices("may", Act.self) ?? [])
        let named = reader.choices("realms", RealmName.self).map(realmSets.set)
        let names = reader.texts("fields")
        guard reader.problems.isEmpty else { return (nil, reader.problems) }
        if writers.isEmpty { reader.report("who", "must have at least one of: \(list(Writer.self))") }
        if acts.isEmpty { reader.report("may", "must have at least one of: \(list(Act.self))") }
        if let other = (named ?? []).subtracting(realms).map(\.rawValue).min() {
            reader.report("realms", "has \(other), which is not among the kind's realms")
        }
        let effective = named ?? realms
        for writer in Writer.allCases where writers.contains(writer) {
            guard writer.realms.isDisjoint(with: effective) else { continue }
            let list = writer.realms.map(\.rawValue).sorted().joined(separator: ", ")
            reader.report("who", "has \(writer.rawValue), who is only in realms of the classes: \(list)")
        }
        for name in names ?? [] {
            if let schema = fields.property(name) {
                if schema.isReadOnly { reader.report("fields", "has '\(name)', which is read-only") }
            } else {
                reader.report("fields", "has '\(name.excerpt)', which is not among the properties")
            }
        }
        return (Permission(writers: writers, realms: effective, acts: acts, fields: names), reader.problems)
    }

    private static func list<Choice: RawRepresentable & CaseIterable>(_ type: Choice.Type) -> String
    where Choice.RawValue == String {
        Choice.allCases.map(\.rawValue).joined(separator: ", ")
    }
}
