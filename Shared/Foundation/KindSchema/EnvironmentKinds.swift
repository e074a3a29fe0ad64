import Essentials

/// The kinds that an environment declares: the content of a schema file.
package struct EnvironmentKinds: Equatable, Sendable {
    /// Maximum size of a schema file, in bytes.
    package static let fileBytesMax = 1 << 20
    /// Maximum number of kinds of an environment.
    package static let kindCountMax = 100
    /// Maximum number of problems that are reported at once.
    private static let problemCountMax = 50

    /// The kinds by their names.
    package let kinds: [String: KindDeclaration]

    /// The first 50 problems of a schema file.
    package struct Problems: Error, Equatable, Sendable {
        package let list: [SchemaProblem]
    }

    /// Creates the content of an empty file.
    package init() { kinds = [:] }

    /// Reads a schema file.
    ///
    /// - Parameter builtIn: The names of the built-in kinds.
    /// - Throws: ``Problems``.
    package init(_ file: SchemaValue, builtIn: [String]) throws(Problems) {
        let builtInByLowered = Dictionary(builtIn.map { ($0.lowercased(), $0) }) { first, _ in first }
        var reader = SchemaReader(file, "", names: ["$schema", "kinds"])
        _ = reader.text("$schema")
        let members = reader.value("kinds")?.members
        if members == nil { reader.report("kinds", "must be an object with a declaration for each kind") }
        if let members, members.count > Self.kindCountMax {
            reader.report("kinds", "has \(members.count) kinds; at most \(Self.kindCountMax) are allowed")
            throw Problems(list: reader.problems)
        }
        var kinds: [String: KindDeclaration] = [:]
        var (lowered, topics): ([String: String], [String: String]) = ([:], [:])
        for member in members ?? [] {
            guard KindDeclaration.namePattern?.matches(member.name) == true else {
                reader.report(
                    "kinds",
                    "has the name '\(member.name.excerpt)'; a name has 1 to 63 letters and digits, and begins with a "
                        + "capital letter")
                continue
            }
            let location = SchemaProblem.path(reader.location("kinds"), member.name)
            let read = KindDeclaration.read(member.name, member.value, at: location, builtIn: builtInByLowered)
            reader.add(read.problems)
            if let other = lowered.updateValue(member.name, forKey: member.name.lowercased()) {
                reader.add([SchemaProblem(location, "differs from the kind \(other) only in capital letters")])
            }
            if let topic = read.kind.topic, let other = topics.updateValue(member.name, forKey: topic) {
                reader.add([SchemaProblem(location + "/topic", "is also the topic of \(other)")])
            }
            kinds[member.name] = read.kind
        }
        let targets = Set(kinds.keys).union(builtIn)
        for member in members ?? [] {
            guard let kind = kinds[member.name] else { continue }
            let location = SchemaProblem.path(reader.location("kinds"), member.name)
            reader.add(Self.unknownReferences(kind.fields, SchemaProblem.path(location, "properties"), targets))
        }
        guard reader.problems.isEmpty else {
            throw Problems(list: Array(reader.problems.prefix(Self.problemCountMax)))
        }
        self.kinds = kinds
    }

    /// Returns the references to what does not exist.
    private static func unknownReferences(
        _ schema: ValueSchema, _ path: String, _ names: Set<String>
    ) -> [SchemaProblem] {
        var problems: [SchemaProblem] = []
        func check(_ schema: ValueSchema, _ path: String) {
            if let target = schema.reference, !names.contains(target), !ValueSchema.blobReferences.contains(target) {
                let others = ValueSchema.blobReferences.map { "'\($0)'" }.joined(separator: " or ")
                problems.append(
                    SchemaProblem(
                        SchemaProblem.path(path, "references"), "'\(target.excerpt)' is neither a kind nor \(others)"))
            }
            for items in schema.items { check(items, SchemaProblem.path(path, "items")) }
            if case .matching(let others) = schema.additional {
                for other in others { check(other, SchemaProblem.path(path, "additionalProperties")) }
            }
            for property in schema.properties {
                check(property.schema, SchemaProblem.path(SchemaProblem.path(path, "properties"), property.name))
            }
        }
        for property in schema.properties { check(property.schema, SchemaProblem.path(path, property.name)) }
        return problems
    }
}
