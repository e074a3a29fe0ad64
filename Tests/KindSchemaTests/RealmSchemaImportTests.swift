import Essentials
import TestSupport
import Testing

@testable import KindSchema

/// Schemas of App Services and of Realm become valid schema files.
@Suite(.ownThreads) struct RealmSchemaImportTests {
    private func value(_ json: String) throws -> SchemaValue { try SchemaValue(Array(json.utf8)) }

    private func declared(_ source: inout RealmSchemaImport) throws -> EnvironmentKinds {
        let file = source.file()
        do throws(EnvironmentKinds.Problems) {
            return try EnvironmentKinds(file, builtIn: ["Team", "TimeEntry"])
        } catch {
            Issue.record("\(error.list)\n\(file.json)")
            throw error
        }
    }

    private func texts(_ source: RealmSchemaImport) -> [String] {
        source.notes.map { "\($0.isDecision ? "decide" : "note") \($0.source): \($0.text)" }
    }

    @Test func schemasOfAppServicesAreTranslated() throws {
        var source = RealmSchemaImport(builtIn: ["Team", "TimeEntry"])
        try source.add(
            schema: try value(
                """
                {"title": "Inspection", "bsonType": "object", "required": ["_id", "site", "state"], "properties": {
                  "_id": {"bsonType": "objectId"}, "_partition": {"bsonType": "string"},
                  "site": {"bsonType": "objectId"}, "state": {"bsonType": "string"}, "At": {"bsonType": "date"},
                  "photos": {"bsonType": "array", "items": {"bsonType": "binData"}},
                  "tags": {"bsonType": "array", "uniqueItems": true, "items": {"bsonType": "string"}},
                  "extra": {"bsonType": "mixed"}, "price": {"bsonType": "decimal"},
                  "counts": {"bsonType": "object", "additionalProperties": {"bsonType": "long"}},
                  "address": {"title": "Address", "bsonType": "object", "required": ["city"], "properties": {
                    "city": {"bsonType": "string"}, "Zip": {"bsonType": "string"}}},
                  "visitors": {"bsonType": "array", "items": {"bsonType": "string"}}}}
                """),
            relationships: try value(
                """
                {"site": {"ref": "#/relationship/mongodb-atlas/app/Site", "foreign_key": "_id", "is_list": false},
                 "visitors": {"ref": "#/relationship/mongodb-atlas/app/Team", "foreign_key": "_id", "is_list": true}}
                """))
        try source.add(
            schema: try value(
                "{\"title\":\"Site\",\"bsonType\":\"object\",\"properties\":{\"name\":{\"bsonType\":\"string\"}}}"))
        try source.add(
            schema: try value(
                "{\"title\":\"Team\",\"bsonType\":\"object\",\"properties\":{\"id\":{\"bsonType\":\"int\"}}}"))
        let kinds = try declared(&source)
        #expect(kinds.kinds.keys.sorted() == ["AppTeam", "Inspection", "Site"])
        let fields = try #require(kinds.kinds["Inspection"]?.fields)
        #expect(fields.required == ["site", "state"])
        #expect(fields.property("site")?.reference == "Site")
        #expect(fields.property("visitors")?.items.first?.reference == "AppTeam")
        #expect(fields.property("photos")?.items.first?.reference == "image")
        #expect(fields.property("_partition") == nil)
        let valid = """
            {"site": "7d178aa3-aa03-4d94-a051-d5e12b057b4e", "state": "open", "at": "2026-11-27T10:00:00Z",
             "tags": ["a", "a"], "extra": [1, {"a": null}], "price": "1.10", "counts": {"x": 3},
             "address": {"city": "Ulm", "Zip": null}, "visitors": null}
            """
        #expect(fields.problems(of: try value(valid)) == [])
        let invalid = "{\"site\": \"x\", \"state\": null, \"counts\": {\"x\": \"3\"}, \"address\": {}}"
        #expect(
            fields.problems(of: try value(invalid)).map(\.path) == ["/site", "/state", "/counts/x", "/address"])
        let notes = texts(source)
        for expected in [
            "note Inspection.At: is the field at", "decide Inspection.tags: was a set",
            "decide Inspection._partition: is left out", "decide Inspection.extra: may have any value",
            "decide Inspection.price: is a decimal", "decide Inspection.photos: has bytes",
            "decide Team: Fieldpost has the kind Team itself", "note Team.id: is the field externalId",
            "note Inspection._id: is the object's id", "decide Site: choose the realms",
        ] {
            #expect(notes.contains { $0.hasPrefix(expected) }, "\(expected): \(notes)")
        }
    }

    @Test func classesOfRealmAreTranslated() throws {
        var source = RealmSchemaImport(builtIn: ["Team", "TimeEntry"])
        try source.add(
            classes: try value(
                """
                [{"name": "Visit", "primaryKey": "key", "properties": {
                   "key": "uuid", "title": "string", "note": "string?", "at": {"type": "date", "optional": true},
                   "site": "Site?", "sites": "Site[]", "labels": "string<>", "counts": "int{}", "size": "Size",
                   "sizes": {"type": "list", "objectType": "Size"}, "price": "decimal128", "extra": "mixed",
                   "file": "data?", "flags": {"type": "list", "objectType": "bool"}, "marks": "int?[]"}},
                 {"name": "Site", "primaryKey": "_id", "properties": {"_id": "objectId", "name": "string",
                   "visits": {"type": "linkingObjects", "objectType": "Visit", "property": "site"}}},
                 {"name": "Size", "embedded": true, "properties": {"width": "double", "unit": "string?"}},
                 {"name": "Log", "asymmetric": true, "primaryKey": "_id",
                   "properties": {"_id": "uuid", "text": "string"}}]
                """))
        let kinds = try declared(&source)
        #expect(kinds.kinds.keys.sorted() == ["Log", "Site", "Visit"])
        let fields = try #require(kinds.kinds["Visit"]?.fields)
        #expect(
            fields.required == ["title", "sites", "labels", "counts", "sizes", "price", "extra", "flags", "marks"])
        let valid = """
            {"title": "a", "sites": ["7d178aa3-aa03-4d94-a051-d5e12b057b4e"], "labels": [], "counts": {"a": 1},
             "size": {"width": 1.5}, "sizes": [{"width": 2, "unit": null}], "price": "1", "extra": null, "note": null,
             "site": null, "flags": [true], "marks": [1, null]}
            """
        #expect(fields.problems(of: try value(valid)) == [])
        let invalid = valid.replacing("{\"width\": 1.5}", with: "{\"height\": 1}").replacing("[true]", with: "[1]")
        #expect(fields.problems(of: try value(invalid)).map(\.path) == ["/size", "/size/height", "/flags/0"])
        let notes = texts(source)
        for expected in [
            "note Visit.key: is the object's id", "note Site.visits: is left out", "decide Visit.labels: was a set",
            "decide Log: was written only", "decide Visit.file: has bytes",
        ] {
            #expect(notes.contains { $0.hasPrefix(expected) }, "\(expected): \(notes)")
        }
    }

    @Test(arguments: [
        ("[{\"name\":\"A\",\"properties\":{}},{\"name\":\"A\",\"properties\":{}}]", "a second time"),
        ("{}", "must be a list of classes"), ("[{}]", "/0/name: is missing"), ("[{\"name\":\"A\"}]", "/0/properties"),
        ("[{\"name\":\"A\",\"properties\":{\"a\":{}}}]", "/0/properties/a: has no 'type'"),
    ]) func malformedClassesAreRefused(json: String, expected: String) throws {
        var source = RealmSchemaImport(builtIn: ["Team", "TimeEntry"])
        let problem = #expect(throws: SchemaProblem.self) { try source.add(classes: try value(json)) }
        #expect(problem?.description.contains(expected) == true)
    }

    /// Classes that embed each other have no finite form.
    @Test func recursiveClassesEnd() throws {
        var source = RealmSchemaImport(builtIn: ["Team", "TimeEntry"])
        try source.add(
            classes: try value(
                """
                [{"name": "Part", "embedded": true,
                   "properties": {"name": "string", "part": "Part", "parts": "Part[]"}},
                 {"name": "Machine", "properties": {"root": "Part"}}]
                """))
        let file = source.file()
        #expect(file.json.utf8.count < 1 << 20)
        #expect(source.notes.contains { $0.isDecision && $0.text.contains("its own class") })
    }
}
