import Essentials
import TestSupport
import Testing

@testable import KindSchema

/// Values that were valid before an additive change are valid after it.
@Suite(.ownThreads) struct KindChangeTests {
    private func kinds(_ fields: SchemaValue, _ rest: String = "\"realms\":[\"user\"]") throws -> EnvironmentKinds {
        let text = "{\"kinds\":{\"Inspection\":{\(rest),\"properties\":{\"f\":\(fields.json)}}}}"
        return try EnvironmentKinds(try SchemaValue(Array(text.utf8)), builtIn: [])
    }

    private func changes(_ old: String, _ new: String) throws -> [String] {
        func kinds(_ text: String) throws -> EnvironmentKinds {
            try EnvironmentKinds(try SchemaValue(Array("{\"kinds\":{\(text)}}".utf8)), builtIn: [])
        }
        return try kinds(old).changes(to: try kinds(new)).map {
            "\($0.effect.rawValue): \($0.kind)\($0.path) \($0.text)"
        }
    }

    @Test(arguments: Seeds.random(20, thorough: 500, for: "kind changes")) func additiveChangesKeepValuesValid(
        seed: UInt64
    ) throws {
        var random = RandomSchemas(seed: seed)
        var additiveCount = 0
        for _ in 0..<400 {
            let (first, second) = (random.schema(), random.number(3) == 0 ? random.schema() : nil)
            let changed = second ?? random.changed(first)
            // A schema that was changed often may be nested too deep.
            guard let other = try? SchemaValue(Array(changed.json.utf8)) else { continue }
            var count = 0
            let (schema, problems) = ValueSchema.read(other, at: "", depth: 1, count: &count)
            guard problems.isEmpty, let old = try? kinds(first), let new = try? kinds(other) else { continue }
            let changes = old.changes(to: new)
            guard !changes.isEmpty, !changes.contains(where: { $0.effect == .breaking }) else { continue }
            additiveCount += 1
            let before = try #require(old.kinds["Inspection"]?.fields.property("f"))
            for _ in 0..<10 {
                guard let value = try? SchemaValue(Array(random.value(for: first).json.utf8)) else { continue }
                guard before.problems(of: value).isEmpty else { continue }
                #expect(schema.problems(of: value) == [], "\(first.json) to \(other.json): \(value.json)")
            }
        }
        #expect(additiveCount > 5)
    }

    @Test func sameKindsHaveNoChanges() throws {
        var random = RandomSchemas(seed: 7)
        for _ in 0..<200 {
            guard let kinds = try? kinds(random.schema()) else { continue }
            #expect(kinds.changes(to: kinds) == [])
        }
    }

    @Test func changesOfKindsAreNamed() throws {
        let old = """
            "Site": {"realms": ["user"], "properties": {"name": {"type": "string", "maxLength": 10}, "old": {}},
              "permissions": [{"who": ["owner"], "may": ["create", "change", "delete"]}]}
            """
        let new = """
            "Site": {"realms": ["user", "team"], "topic": "sites", "ids": "natural",
              "properties": {"name": {"type": ["string", "null"], "maxLength": 20, "readOnly": true}, "size": {}},
              "permissions": [{"who": ["owner"], "realms": ["user"], "may": ["create", "change"], "fields": ["size"]}]},
            "Visit": {"realms": ["user"], "properties": {"at": {"format": "date"}}}
            """
        #expect(
            try changes(old, new) == [
                "breaking: Site has natural ids instead of random ones",
                "additive: Site is also in realms of the class team",
                "additive: Site is published on the topic sites",
                "additive: Site/name has null or string instead of string",
                "restricting: Site/name is read-only",
                "additive: Site/name has the maxLength 20 instead of 10",
                "breaking: Site/old was removed",
                "additive: Site/size is new",
                "restricting: Site/name can no longer be written at create by: owner in realms of the class user",
                "restricting: Site/name can no longer be written at change by: owner in realms of the class user",
                "restricting: Site no longer allows delete by: owner in realms of the class user",
                "additive: Visit is new",
            ])
        #expect(try changes(new, old).contains("breaking: Visit was removed"))
    }
}

extension RandomSchemas {
    /// Returns a schema that differs in a few keywords.
    mutating func changed(_ schema: SchemaValue) -> SchemaValue {
        guard let members = schema.members else { return schema }
        let other = self.schema()
        var changed = members.filter { _ in number(6) > 0 }
        for member in other.members ?? [] where number(3) == 0 {
            if let index = changed.firstIndex(where: { $0.name == member.name }) {
                changed[index] = member
            } else {
                changed.append(member)
            }
        }
        return .object(
            changed.map { member in
                switch (member.name, member.value) {
                case ("properties", .object(let properties)):
                    .init("properties", .object(properties.map { .init($0.name, self.changed($0.value)) }))
                case ("items", let items): .init("items", self.changed(items))
                default: member
                }
            })
    }
}
