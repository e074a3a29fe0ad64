import Essentials
package import KindSchema

/// Random schemas and values that are near to their limits. Two seeds give the same.
package struct RandomSchemas {
    private var generator: SplitMix64

    package init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    package mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }
    private mutating func chance(_ percent: Int) -> Bool { generator.happens(percent) }
    private mutating func pick<Value>(_ values: [Value]) -> Value { values[number(values.count)] }

    private static let names = ["a", "b", "state", "a/b", "é", "e\u{301}"]
    private static let letters = Array("ab1é- ").map(String.init)

    // MARK: Schemas

    package mutating func schema(depth: Int = 0) -> SchemaValue {
        var members: [SchemaValue.Member] = []
        func add(_ name: String, _ value: SchemaValue) { members.append(.init(name, value)) }
        let kind = number(depth < 3 ? 6 : 4)
        let isTyped = chance(70)
        switch kind {
        case 0:
            if isTyped { add("type", chance(30) ? .list([.text("string"), .text("null")]) : .text("string")) }
            let low = Int64(number(3))
            if chance(40) { add("minLength", .integer(low)) }
            if chance(40) { add("maxLength", .integer(low + Int64(number(3)))) }
            if chance(40) { add("pattern", .text(pattern())) }
        case 1:
            if isTyped { add("type", .text(pick(["integer", "number"]))) }
            let low = numeric()
            if chance(50) { add("minimum", low) }
            if chance(30) { add("maximum", low) }
        case 2:
            add("enum", .list((0...number(4)).map { _ in value(depth: 2) }))
        case 3:
            switch number(5) {
            case 0: add("const", value(depth: 2))
            case 1: add("type", .list([.text("boolean"), .text("null")]))
            case 2: add("format", .text(pick(ValueSchema.Format.allCases).rawValue))
            case 3: add("type", .text(pick(ValueSchema.ValueType.allCases).rawValue))
            default: break
            }
        case 4:
            if isTyped { add("type", .text("array")) }
            if chance(80) { add("items", schema(depth: depth + 1)) }
            if chance(40) { add("maxItems", .integer(Int64(number(4)))) }
        default:
            if isTyped { add("type", .text("object")) }
            let names = Self.names.filter { _ in chance(50) }
            add("properties", .object(names.map { .init($0, schema(depth: depth + 1)) }))
            if chance(50) { add("required", .list(Self.names.filter { _ in chance(25) }.map { .text($0) })) }
            switch number(3) {
            case 0: add("additionalProperties", .bool(false))
            case 1: add("additionalProperties", schema(depth: depth + 1))
            default: break
            }
        }
        return .object(members)
    }

    package mutating func pattern(depth: Int = 0) -> String {
        let parts = (0...number(3)).map { _ -> String in
            var part =
                switch number(depth < 2 ? 8 : 6) {
                case 0: "."
                case 1: pick(["[ab]", "[^a1]", "[a-c1-]", "\\d", "\\w", "[^\\d]", "\\S", "\\."])
                case 6: "(" + pattern(depth: depth + 1) + ")"
                case 7: "(?:" + pattern(depth: depth + 1) + "|" + pattern(depth: depth + 1) + ")"
                default: pick(["a", "b", "1"])
                }
            if chance(35) { part += pick(["*", "+", "?", "{2}", "{1,2}", "{1,}", "*?"]) }
            return part
        }
        return (chance(25) ? "^" : "") + parts.joined() + (chance(25) ? "$" : "")
    }

    // MARK: Values

    private mutating func numeric() -> SchemaValue {
        switch number(6) {
        case 0: .number(Double(number(40)) / 4 - 5)
        case 1: .integer(pick([9_007_199_254_740_991, 9_007_199_254_740_992, -9_007_199_254_740_991]))
        default: .integer(Int64(number(12)) - 5)
        }
    }

    private mutating func text() -> String {
        switch number(8) {
        case 0: pick(["2026-11-27", "2023-02-29", "2026-11-27T18:49:06Z", "7d178aa3-aa03-4d94-a051-d5e12b057b4e"])
        default: (0..<number(6)).map { _ in pick(Self.letters) }.joined()
        }
    }

    /// Returns any value.
    package mutating func value(depth: Int = 0) -> SchemaValue {
        switch number(depth < 3 ? 8 : 6) {
        case 0: .null
        case 1: .bool(chance(50))
        case 2, 3: numeric()
        case 6: .list((0..<number(4)).map { _ in value(depth: depth + 1) })
        case 7: .object(Self.names.filter { _ in chance(40) }.map { .init($0, value(depth: depth + 1)) })
        default: .text(text())
        }
    }

    /// Returns a value that a schema often accepts.
    package mutating func value(for schema: SchemaValue, depth: Int = 0) -> SchemaValue {
        if depth > 6 || chance(10) { return value(depth: depth) }
        if let values = schema["enum"]?.values, !values.isEmpty, chance(80) { return pick(values) }
        if let value = schema["const"], chance(80) { return value }
        let type = schema["type"].flatMap { $0.text ?? $0.values.flatMap { pick($0).text } }
        if type == "null" { return .null }
        if type == "boolean" { return .bool(chance(50)) }
        if schema["items"] != nil || type == "array" {
            let items = schema["items"] ?? .object([])
            return .list((0..<number(4)).map { _ in value(for: items, depth: depth + 1) })
        }
        if let properties = schema["properties"]?.members {
            let other = schema["additionalProperties"]
            return .object(
                Self.names.compactMap { name -> SchemaValue.Member? in
                    if let property = properties.first(where: { $0.name == name }) {
                        return chance(75) ? .init(name, value(for: property.value, depth: depth + 1)) : nil
                    }
                    let isRequired = schema["required"]?.values?.contains(.text(name)) == true
                    guard chance(isRequired ? 90 : 15) else { return nil }
                    return .init(name, value(for: other ?? .object([]), depth: depth + 1))
                })
        }
        if schema["minimum"] != nil || schema["maximum"] != nil || type == "integer" || type == "number" {
            return chance(30) ? schema["minimum"] ?? numeric() : numeric()
        }
        if type == nil, schema["format"] == nil, schema["pattern"] == nil, schema["minLength"] == nil {
            return value(depth: depth)
        }
        return .text(text())
    }
}
