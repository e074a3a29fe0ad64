import Essentials
import Foundation
import ProjectDocuments
import Testing
import Yams

/// The schemas of `fieldpost … --json` in `deploy/cli.schema.yaml`.
///
/// Every run of ``fieldpost(_:environment:)`` with `--json` validates its output. The validator supports the keywords
/// of that file, and is stricter than JSON Schema: an undocumented field is a problem.
package struct OutputSchema {
    private let definitions: Node

    package init() throws {
        definitions = try #require(try ProjectDocument("deploy/cli.schema.yaml").root["$defs"])
    }

    /// The names of the schemas in their order: commands, then their parts.
    package var names: [String] { definitions.members.map(\.name) }

    /// Returns the name of the schema of a command line: that of its longest command.
    package func name(of arguments: [String]) -> String? {
        let words = arguments.prefix { !$0.hasPrefix("-") }
        return (1...4).reversed().lazy.filter { $0 <= words.count }.map { words.prefix($0).joined(separator: "-") }
            .first { definitions[$0] != nil }
    }

    /// Returns the first problems of an output: locations with what is wrong.
    package func problems(of output: String, as name: String) throws -> [String] {
        let schema = try #require(definitions[name], "no schema \(name)")
        return Array(try problems(of: Array(output.utf8), schema, at: name).prefix(10))
    }

    private func problems(of bytes: [UInt8], _ schema: Node, at path: String) throws -> [String] {
        if let reference = schema["$ref"]?.string {
            let name = String(reference.split(separator: "/").last ?? "")
            return try problems(of: bytes, try #require(definitions[name], "no schema \(name)"), at: path)
        }
        if let choices = schema["anyOf"]?.sequence {
            let results = try choices.map { try problems(of: bytes, $0, at: path) }
            return results.contains(where: \.isEmpty) ? [] : results.min { $0.count < $1.count } ?? []
        }
        let type = try #require(schema["type"]?.string, "\(path) has a type")
        let first = bytes.first { !" \n\r\t".utf8.contains($0) } ?? 0
        switch (type, first) {
        case ("array", UInt8(ascii: "[")):
            let items = try #require(schema["items"], "\(path) has items")
            return try JSONCheck.elements(of: bytes).enumerated().flatMap { index, range in
                try problems(of: Array(bytes[range]), items, at: "\(path)[\(index)]")
            }
        case ("object", UInt8(ascii: "{")): return try members(of: bytes, schema, at: path)
        case ("string", UInt8(ascii: "\"")):
            let text = try JSONDecoder().decode(String.self, from: Data(bytes))
            return Self.problem(of: text, schema).map { ["\(path): '\(text)' \($0)"] } ?? []
        case ("boolean", UInt8(ascii: "t")), ("boolean", UInt8(ascii: "f")): return []
        case ("integer", _), ("number", _):
            let text = String(decoding: bytes, as: UTF8.self)
            let isNumber = type == "integer" ? Int64(text) != nil : Double(text) != nil
            return isNumber ? [] : ["\(path): \(text) is no \(type)"]
        default: return ["\(path): \(String(decoding: bytes.prefix(40), as: UTF8.self)) is no \(type)"]
        }
    }

    private func members(of bytes: [UInt8], _ schema: Node, at path: String) throws -> [String] {
        let members = try JSONCheck.members(of: bytes, countMax: .max)
        let properties = schema["properties"] ?? [:]
        let missing = (schema["required"]?.sequence ?? []).compactMap(\.string).filter { name in
            !members.contains { $0.key == name }
        }
        var problems = missing.map { "\(path) has no \($0)" }
        for member in members {
            let (value, location) = (Array(bytes[member.value]), "\(path).\(member.key)")
            if let property = properties[member.key] {
                problems += try self.problems(of: value, property, at: location)
            } else if let values = schema["additionalProperties"] {
                if values.bool != true { problems += try self.problems(of: value, values, at: location) }
            } else {
                problems.append("\(location) is not documented")
            }
        }
        return problems
    }

    private static func problem(of text: String, _ schema: Node) -> String? {
        if let allowed = schema["enum"]?.texts, !allowed.contains(text) { return "is not one of the documented values" }
        switch schema["format"]?.string {
        case nil: return nil
        case "uuid": return UUID(ascii: text)?.text == text ? nil : "is no id in lower case"
        case "date-time": return Timestamp(text) != nil && text.hasSuffix("Z") ? nil : "is no time in UTC (RFC 3339)"
        case .some(let format): return "has the format \(format), which the test cannot validate"
        }
    }
}

extension CommandResult {
    /// Validates the output of `fieldpost` with `--json`. A command that fails may print nothing.
    func validate(_ arguments: [String]) throws {
        guard arguments.contains("--json"), !arguments.contains("--watch"), !output.isEmpty else { return }
        let schema = try OutputSchema()
        guard let name = schema.name(of: arguments) else {
            Issue.record("deploy/cli.schema.yaml has no schema of \(arguments)")
            return
        }
        let problems = try schema.problems(of: output, as: name)
        #expect(problems.isEmpty, "\(arguments): \(problems)")
    }
}
