import Essentials
import Foundation
import ProjectDocuments
import Testing
import Yams

/// Values that are derived from a schema, as raw JSON.
struct SchemaValues {
    typealias Forbidden = (json: String, why: String)

    let schemas: Node

    private func resolved(_ node: Node) throws -> Node {
        guard let reference = node["$ref"]?.string else { return node }
        return try #require(schemas[String(reference.split(separator: "/").last ?? "")])
    }

    private func number(_ node: Node?) -> Double? { node.flatMap { $0.float ?? $0.int.map(Double.init) } }

    /// - Parameter sample: A value of the field that is allowed.
    func forbidden(_ unresolved: Node, sample: String) throws -> [Forbidden] {
        let node = try resolved(unresolved)
        let types = node["type"]?.texts ?? []
        var values: [Forbidden] = []
        let ofTypes: [(type: String, json: String)] = [
            ("null", "null"), ("string", #""no such text""#), ("integer", "7"), ("number", "7.5"), ("boolean", "true"),
            ("array", "[]"), ("object", "{}"), ("object", #"{"no":"such"}"#),
        ]
        for (type, json) in ofTypes where !types.contains(type) && !(type == "integer" && types.contains("number")) {
            values.append((json, "a value of type \(type)"))
        }
        if types.contains("integer") {
            values += [("7.25", "not whole"), ("75e-1", "not whole"), (#""7""#, "a text"), ("1e30", "too large")]
        }
        if let minimum = number(node["minimum"]) { values.append((text(minimum - 1), "below the minimum")) }
        if let maximum = number(node["maximum"]) { values.append((text(maximum + 1), "above the maximum")) }
        if types.contains("string") { values += try texts(node) }
        if types.contains("array") { values += try arrays(node, sample) }
        if types.contains("object") { values += try objects(node, sample) }
        return values
    }

    private func text(_ number: Double) -> String { number == number.rounded() ? "\(Int64(number))" : "\(number)" }

    private static let hostileTexts = [
        "", " ", "red", "<svg>", "#1E90FF", "1E90F", "1E90FFF", "١٢٣٤٥٦", "no such value", "DRAFT", "\u{200B}",
        "a\u{0301}",
        "24:00", "07:30 ", "22:00-22:0", "../..", "javascript:alert(1)", String(repeating: "x", count: 3_000),
    ]

    private static let ofFormats: [String: [String]] = [
        "uuid": ["no id", "+b7f3f5e-0000-4000-8000-000000000000", "8f4b9a9e0a514a0e9f0c2f3a7b1f6c11", ""],
        "date": ["2026-13-01", "2026-02-30", "26-01-01", "2026-1-1", "2026-01-01T00:00:00Z", ""],
        "date-time": ["2026-03-30", "2026-03-30T25:00:00Z", "2026-03-30T10:00:00", "yesterday", "1774864800", ""],
        "email": ["no", "Ana@Example.com", "a@b@c.example", "ána@example.com", " ana@example.com", ""],
        "uri": ["http://x.example/", "javascript:alert(1)", "https://x.example/a b", ""],
    ]

    private func texts(_ node: Node) throws -> [Forbidden] {
        var values: [Forbidden] = []
        if let words = node["enum"]?.texts {
            values += Self.hostileTexts.filter { !words.contains($0) }.map { (quoted($0), "not in the list") }
        }
        if let pattern = node["pattern"]?.string {
            let regex = try NSRegularExpression(pattern: pattern)
            for text in Self.hostileTexts {
                let whole = NSRange(text.startIndex..., in: text)
                if regex.firstMatch(in: text, range: whole) == nil { values.append((quoted(text), "not \(pattern)")) }
            }
        }
        if let format = node["format"]?.string {
            let hostile = try #require(Self.ofFormats[format], "the test has values for the format \(format)")
            values += hostile.map { (quoted($0), "no \(format)") }
        }
        if let least = node["minLength"]?.int, least > 0 {
            // Names: an invisible one counts as empty.
            values += ["", " ", "\u{200B}", "\u{2800}", "\u{3164}", "\u{00A0}\u{FEFF}"].map {
                (quoted($0), "invisible")
            }
        }
        if let most = node["maxLength"]?.int {
            values.append((quoted("https://a.example/" + String(repeating: "a", count: most)), "too long"))
        }
        return values
    }

    private func arrays(_ node: Node, _ sample: String) throws -> [Forbidden] {
        let items = try resolved(try #require(node["items"]))
        let elements = try elements(sample)
        var values: [Forbidden] = []
        for value in try forbidden(items, sample: elements.first ?? "null") {
            values.append(("[\(value.json)]", value.why))
            if let first = elements.first { values.append(("[\(first),\(value.json)]", value.why)) }
        }
        if let most = node["maxItems"]?.int, let first = elements.first {
            values.append(("[" + Array(repeating: first, count: most + 1).joined(separator: ",") + "]", "too many"))
        }
        return values
    }

    private func objects(_ node: Node, _ sample: String) throws -> [Forbidden] {
        let members = try members(sample)
        var values: [Forbidden] = []
        if let of = node["additionalProperties"], of.mapping != nil {
            let inner = members.first?.value ?? "null"
            values += try forbidden(of, sample: inner).map { (#"{"x":\#($0.json)}"#, $0.why) }
        }
        if node["additionalProperties"]?.bool == false {
            values.append((object(members + [("x", "1")]), "an unknown member"))
            values.append((#"{"x":1}"#, "only an unknown member"))
        }
        if node["minProperties"] != nil { values.append(("{}", "no member")) }
        for (name, property) in node["properties"]?.members ?? [] {
            let own = members.first { $0.key == name }?.value
            for value in try forbidden(property, sample: own ?? "null") {
                values.append((object(members.filter { $0.key != name } + [(name, value.json)]), value.why))
            }
        }
        for name in node["required"]?.texts ?? [] {
            values.append((object(members.filter { $0.key != name }), "without \(name)"))
        }
        if let first = members.first { values.append((object(members + [first]), "a duplicate key")) }
        return values
    }

    /// Returns values that are allowed with any other fields.
    func allowed(_ unresolved: Node, sample: String) throws -> [String] {
        let node = try resolved(unresolved)
        let types = node["type"]?.texts ?? []
        var values = [sample]
        if types.contains("null") { values.append("null") }
        values += (node["enum"]?.texts ?? []).map { $0 == "null" ? "null" : quoted($0) }
        values += (node["examples"]?.array() ?? []).compactMap(\.string).filter { _ in types.contains("string") }
            .map(quoted)
        if types.contains("integer") {
            values += ["7", "7.0", "7e0", "70e-1", "0.7E+1"]
            values += [node["minimum"], node["maximum"]].compactMap(number).map(text)
        }
        if types.contains("number") {
            values += ["7", "7.25", "7e-2"] + [node["minimum"], node["maximum"]].compactMap(number).map(text)
        }
        if types.contains("boolean") { values += ["true", "false"] }
        if types.contains("array") { values.append("[]") }
        if node["format"]?.string == "date-time" { values += [quoted("2026-03-30T10:00:00.123456+02:00")] }
        if types.contains("string"), node["format"] == nil, node["pattern"] == nil, node["enum"] == nil {
            values += ["Ørsted", "日本", "😀", "<svg>", "a\u{0301}"].map(quoted)
        }
        if node["format"]?.string == "uuid", sample != "null" { values.append(sample.uppercased()) }
        return values
    }

    private func quoted(_ text: String) -> String {
        let bytes = try? JSONSerialization.data(
            withJSONObject: text, options: [.fragmentsAllowed, .withoutEscapingSlashes])
        return String(decoding: bytes ?? Data(), as: UTF8.self)
    }

    private func elements(_ json: String) throws -> [String] {
        let bytes = Array(json.utf8)
        guard bytes.first == UInt8(ascii: "[") else { return [] }
        return try JSONCheck.elements(of: bytes).map { String(decoding: bytes[$0], as: UTF8.self) }
    }

    private func members(_ json: String) throws -> [(key: String, value: String)] {
        let bytes = Array(json.utf8)
        guard bytes.first == UInt8(ascii: "{") else { return [] }
        return try JSONCheck.members(of: bytes).map { ($0.key, String(decoding: bytes[$0.value], as: UTF8.self)) }
    }

    private func object(_ members: [(key: String, value: String)]) -> String {
        "{" + members.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
    }
}
