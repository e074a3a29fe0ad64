import ProjectDocuments
import TestSupport
import Testing
import Yams

/// The reference of `fieldpost … --json`, made from `deploy/cli.schema.yaml`.
enum OutputReference {
    /// The commands with `--json`, and the one that always prints JSON.
    static func commands() throws -> [String] {
        let parts = try parts()
        return try OutputSchema().names.filter { !parts.contains($0) }
    }

    /// The schemas to which others refer.
    private static func parts() throws -> Set<String> {
        let text = try ProjectDocument("deploy/cli.schema.yaml").text
        return Set(text.matches(of: /\$defs\/([a-z-]+)/).map { String($0.1) })
    }

    /// A section for each command, then for each part.
    static func reference() throws -> String {
        let definitions = try #require(try ProjectDocument("deploy/cli.schema.yaml").root["$defs"])
        let parts = try parts()
        return definitions.members.flatMap { name, schema in
            let title = parts.contains(name) ? name : "fieldpost \(name.replacing("-", with: " "))"
            return ["## \(title)", schema["description"]?.string ?? ""] + shape(schema)
        }.joined(separator: "\n\n")
    }

    private static func shape(_ schema: Node) -> [String] {
        if let choices = schema["anyOf"]?.sequence {
            return [choices.map { "- \(phrase($0))" }.joined(separator: "\n")]
        }
        let items = schema["items"]
        if schema["$ref"] != nil || items?["$ref"] != nil { return [phrase(schema)] }
        let intro = items == nil ? "An object:" : "An array of objects:"
        return [intro, Documents.table(["field", "type", "meaning"], rows(items ?? schema, ""))]
    }

    private static func phrase(_ schema: Node) -> String {
        if let items = schema["items"] { return "An array of \(link(items))." }
        return "An object: \(link(schema))."
    }

    private static func link(_ schema: Node) -> String {
        let name = schema["$ref"]?.string?.split(separator: "/").last ?? ""
        return "[\(name)](#\(name))"
    }

    private static func rows(_ schema: Node, _ prefix: String) -> [[String]] {
        let required = schema["required"]?.texts ?? []
        return (schema["properties"]?.members ?? []).flatMap { name, property in
            let suffix = required.contains(name) ? "" : ", optional"
            let row = ["`\(prefix)\(name)`", typeText(property) + suffix, property["description"]?.string ?? ""]
            let items = property["items"]
            let below = items.map { rows($0, "\(prefix)\(name)[].") } ?? rows(property, "\(prefix)\(name).")
            return [row] + below
        }
    }

    private static func typeText(_ schema: Node) -> String {
        if schema["$ref"] != nil { return link(schema) }
        if let values = schema["enum"]?.sequence {
            return values.compactMap(\.string).map { "`\($0)`" }.joined(separator: ", ")
        }
        switch schema["format"]?.string {
        case "uuid": return "id"
        case "date-time": return "time"
        default: break
        }
        let name = schema["type"]?.string ?? ""
        if let items = schema["items"] { return "array of \(typeText(items))" }
        guard let values = schema["additionalProperties"], values.bool == nil else { return name }
        return "object of \(typeText(values))"
    }
}

/// Every command with `--json` has a schema.
@Suite(.ownThreads) struct OutputSchemaTests {
    @Test func everyCommandHasItsSchema() throws {
        let names = try CommandReference.commandsWithJSON().map { name in
            name.split(separator: " ").dropFirst().joined(separator: "-")
        }
        #expect(names.count > 30)
        #expect(try Set(names + ["deferred-export"]) == Set(OutputReference.commands()))
    }
}
