import Foundation
import Model
import ProjectDocuments
import TestSupport
import Testing
import Yams

/// `deploy/openapi.yaml` describes the fields of each kind as the code decodes them: their names, types, nullability
/// and allowed values. `deploy/asyncapi.yaml` describes the kinds that only services exchange.
@Suite struct KindSchemaTests {
    /// Kinds that no device and no integration can access.
    private static let ofServices = Kind.allCases.filter(\.row.realms.isEmpty)

    /// A property of a schema.
    private struct Property {
        let types: Set<String>
        let allowedValues: Set<String>?
        let hasFormat: Bool
        let isDescribed: Bool
        /// The schema of an array's elements.
        let items: Node?
        /// The schema of an object's values.
        let values: Node?

        init(_ node: Node) throws {
            types = try #require(node["type"], "\(node)").texts
            allowedValues = node["enum"]?.texts.subtracting(["null"])
            items = node["items"]
            values = node["additionalProperties"]
            hasFormat = !node.names.isDisjoint(with: ["format", "pattern"])
            isDescribed = node["description"] != nil
        }
    }

    private struct Schema {
        let required: Set<String>
        var properties: [String: Property] = [:]

        init(_ node: Node) throws {
            required = node["required"]?.texts ?? []
            for (name, property) in node["properties"]?.members ?? [] { properties[name] = try Property(property) }
        }
    }

    private static func document(_ path: String = "deploy/openapi.yaml") throws -> ProjectDocument {
        try ProjectDocument(path)
    }

    /// Returns the schemas of the kinds and of their arrays' elements by name.
    private static func schemas() throws -> [String: Schema] {
        let all = try #require(try document().root["components"]?["schemas"])
        var schemas: [String: Schema] = [:]
        for choice in try #require(all["Object"]?["allOf"]).array() {
            let kind = try #require(choice["if"]?["properties"]?["kind"]?["const"]?.string)
            let fields = choice["then"]?["properties"]?["fields"]?["$ref"]?.string
            #expect(fields == "#/components/schemas/\(kind)")
            schemas[kind] = try Schema(try #require(all[kind], "\(kind)"))
        }
        let services = try #require(try document("deploy/asyncapi.yaml").root["components"]?["schemas"])
        for kind in ofServices.map(\.rawValue) { schemas[kind] = try Schema(try #require(services[kind], "\(kind)")) }
        for part in ["ReportingSelection", "ReportingSection", "PushTarget", "DeviceTarget"] {
            schemas[part] = try Schema(try #require(all[part], "\(part)"))
        }
        return schemas
    }

    @Test func everyKindHasItsSchema() throws {
        let schemas = try Self.schemas()
        let parts = ["ReportingSelection", "ReportingSection", "PushTarget", "DeviceTarget"]
        #expect(Set(schemas.keys) == Set(Kind.allCases.map(\.rawValue) + parts))
        for kind in Kind.allCases {
            let schema = try #require(schemas[kind.rawValue])
            #expect(Set(schema.properties.keys) == Set(kind.fieldNames), "\(kind)")
            let whole = try fields(kind)
            try compare(schema, kind.rawValue, whole) { kind.objection(to: try json($0)) == nil }
        }
    }

    /// Columns of a client of the PowerSync protocol are converted by the forms of their fields. Views of nested fields
    /// have their members, in this order.
    @Test func formsOfFieldsEqualTheSchemas() throws {
        let schemas = try #require(try Self.document().root["components"]?["schemas"])
        for kind in Kind.allCases where !kind.row.realms.isEmpty {
            for (name, property) in try #require(schemas[kind.rawValue]?["properties"]).members {
                #expect(try kind.form(of: name) == Self.form(property, in: schemas), "\(kind).\(name)")
            }
        }
    }

    private static func form(_ schema: Node, in schemas: Node) throws -> FieldForm {
        if let reference = schema["$ref"]?.string {
            let name = try #require(reference.split(separator: "/").last)
            return try form(try #require(schemas[String(name)], "\(reference)"), in: schemas)
        }
        let types = try #require(schema["type"]).texts.subtracting(["null"])
        switch types.first {
        case "string": return .text
        case "boolean": return .boolean
        case "integer": return .integer
        case "number": return .number
        case "array": return .structure(.list(of: try form(try #require(schema["items"]), in: schemas)))
        case "object":
            guard let members = schema["properties"]?.members else {
                return .structure(.map(of: try form(try #require(schema["additionalProperties"]), in: schemas)))
            }
            return .structure(.object(try members.map { .init(name: $0.name, form: try form($0.value, in: schemas)) }))
        default: throw Unexpected(types: types)
        }
    }

    private struct Unexpected: Error { let types: Set<String> }

    /// Objects that are read and mutations that are sent have the fields of their kind.
    @Test func objectsAndMutationsReferToTheSchemas() throws {
        let text = try Self.document("deploy/openapi.yaml").text
        for kind in Kind.allCases {
            let name = kind.rawValue
            let condition = #"- if: \{properties: \{kind: \{const: \#(name)\}.*\n"#
            let reference = ##" +then: .*fields: \{\$ref: "#/components/schemas/\##(name)"\}"##
            let count = try text.matches(of: Regex(condition + reference)).count
            #expect(count == (Self.ofServices.contains(kind) ? 0 : 2), "\(name)")
        }
    }

    /// Elements of an array of a kind.
    @Test(arguments: [
        (Kind.timeEntry, "reporting", "ReportingSelection"), (.reportingContext, "sections", "ReportingSection"),
        (.deliveryChoice, "pushes", "PushTarget"), (.deliveryChoice, "devices", "DeviceTarget"),
    ])
    func arrayElementsHaveTheirSchema(kind: Kind, field: String, name: String) throws {
        let schema = try #require(try Self.schemas()[name])
        let whole = try fields(kind)
        let elements = try #require(whole[field] as? [[String: Any]])
        // Each has some of the fields.
        #expect(Set(schema.properties.keys) == Set(elements.flatMap(\.keys)))
        for part in elements {
            var own = schema
            own.properties = schema.properties.filter { part[$0.key] != nil }
            try compare(own, name, part) { part in
                var changed = whole
                changed[field] = [part]
                return kind.objection(to: try json(changed)) == nil
            }
        }
    }

    @Test func enumValuesEqualTheCode() throws {
        let schemas = try Self.schemas()
        let statuses = Set(EntryStatus.allCases.map(\.rawValue))
        #expect(schemas["TimeEntry"]?.properties["status"]?.allowedValues == statuses)
        #expect(schemas["TimeEntryStatus"]?.properties["status"]?.allowedValues == statuses)
        let timeTypes = Set(TimeEntry.TimeType.allCases.map(\.rawValue))
        #expect(schemas["TimeEntry"]?.properties["timeType"]?.allowedValues == timeTypes)
        #expect(schemas["Person"]?.properties["role"]?.allowedValues == Set(Role.allCases.map(\.rawValue)))
    }

    /// The document lists them in a table, because codes may be added.
    @Test func everyCodeIsDocumented() throws {
        let text = try Self.document().text
        for code in TimeEntryStatus.Code.all.map(\.rawValue) + Notice.Code.all.map(\.rawValue) {
            #expect(text.contains("`\(code)`"), "\(code)")
        }
    }

    /// Verifies that the code accepts exactly the values that the schema allows.
    private func compare(
        _ schema: Schema, _ name: String, _ whole: [String: Any], isTaken: ([String: Any]) throws -> Bool
    ) throws {
        #expect(try isTaken(whole), "\(name)")
        let samples: [(type: String, value: Any)] = [
            ("null", NSNull()), ("string", "no value of any list"), ("integer", 7), ("number", 7.5), ("boolean", true),
            ("object", ["no": "field"]),
        ]
        for (field, property) in schema.properties {
            #expect(property.isDescribed, "\(name).\(field) has a description")
            func takes(with value: Any?) throws -> Bool {
                var changed = whole
                changed[field] = value
                return try isTaken(changed)
            }
            #expect(try takes(with: nil) != schema.required.contains(field), "\(name).\(field) is required or not")
            for (type, value) in samples {
                let isNumber = type == "integer" && property.types.contains("number")
                let isFree = type != "string" || property.allowedValues == nil && !property.hasFormat
                let isOfTexts = type != "object" || property.values.map { $0["type"]?.texts == ["string"] } ?? true
                let isAllowed = (property.types.contains(type) || isNumber) && isFree && isOfTexts
                #expect(try takes(with: value) == isAllowed, "\(name).\(field): \(type)")
            }
            if let lists = property.values?["items"] {
                #expect(lists["type"]?.texts == ["string"], "\(name).\(field)")
                #expect(try takes(with: ["no": ["field"]]) && !takes(with: ["no": [7]]), "\(name).\(field)")
            }
            for value in property.allowedValues ?? [] { #expect(try takes(with: value), "\(name).\(field): \(value)") }
            #expect((property.items != nil) == (whole[field] is [Any]), "\(name).\(field)")
            guard let items = property.items else { continue }
            #expect(try takes(with: [Any]()) && !takes(with: [7]), "\(name).\(field)")
            let isOfTexts = items["type"]?.texts == ["string"] && items["format"] == nil
            #expect(isOfTexts || items["format"]?.string == "uuid" || items["$ref"] != nil, "\(name).\(field)")
            #expect(try takes(with: ["no id"]) == isOfTexts, "\(name).\(field)")
        }
    }

    /// Returns an object of the kind with every field.
    private func fields(_ kind: Kind) throws -> [String: Any] {
        try #require(try canonical(golden("\(kind.rawValue).v1")) as? [String: Any])
    }

    private func json(_ fields: [String: Any]) throws -> [UInt8] {
        Array(try JSONSerialization.data(withJSONObject: fields))
    }
}
