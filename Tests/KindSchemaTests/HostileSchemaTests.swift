import Essentials
import TestSupport
import Testing

@testable import KindSchema

/// Schemas that would cost much time or memory are refused, with a reason.
@Suite(.ownThreads) struct HostileSchemaTests {
    private func problems(_ text: String) throws -> [SchemaProblem] {
        let value = try SchemaValue(Array(text.utf8))
        do throws(EnvironmentKinds.Problems) {
            _ = try EnvironmentKinds(value, builtIn: ["Team", "TimeEntry"])
            return []
        } catch { return error.list }
    }

    private func problems(kind: String, name: String = "Inspection") throws -> [SchemaProblem] {
        try problems("{\"kinds\": {\"\(name)\": \(kind)}}")
    }

    private func field(_ schema: String) throws -> [String] {
        try problems(kind: "{\"realms\": [\"user\"], \"properties\": {\"a\": \(schema)}}").map(\.description)
    }

    @Test(arguments: [
        "(a+)+$", "(a|aa)+$", "(.*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){50}a{50}", "(x+x+)+y",
    ]) func exponentialPatternsAreMatchedInBoundedTime(text: String) throws {
        let pattern = try Pattern(text)
        #expect(!pattern.matches(String(repeating: "x", count: 2_000) + "!"))
        #expect(!pattern.matches(String(repeating: "a", count: 49) + "\n!"))
    }

    /// Ranges of a class are merged, so that each step has a constant cost.
    @Test func classesHaveFewRanges() throws {
        var parser = PatternParser("[" + String(repeating: "\\s", count: 90) + "x]")
        guard case .set(let set) = try parser.parse() else {
            Issue.record("not a class")
            return
        }
        #expect(set.ranges.count == ScalarSet.blanks.ranges.count + 1)
        #expect(set.contains("x") && set.contains("\u{2003}") && !set.contains("y") && !set.contains("\u{2010}"))
        #expect(!set.inverted.contains("x") && set.inverted.contains("y") && set.inverted.contains("\u{10FFFF}"))
    }

    /// A gateway has many compiled patterns in memory.
    @Test func stepsOfPatternsAreSmall() throws {
        #expect(MemoryLayout<Pattern.Step>.stride <= 6)
        var parser = PatternParser("[a-z]{100}-[a-z]{100}")
        var compiler = PatternCompiler()
        try compiler.append(try parser.parse())
        #expect(compiler.steps.count == 201 && compiler.sets.count == 2)
    }

    @Test(arguments: [1, 16, 17, 100]) func propertiesAreFoundByTheirNames(count: Int) throws {
        let members = (0..<count).map { "\"f\($0)\":{\"maxLength\":\($0)}" }.joined(separator: ",")
        var read = 0
        let value = try SchemaValue(Array("{\"properties\":{\(members)}}".utf8))
        let schema = ValueSchema.read(value, at: "", count: &read).schema
        #expect((0..<count).allSatisfy { schema.property("f\($0)")?.lengthMax == Int64($0) })
        #expect(schema.property("f\(count)") == nil && schema.property("F0") == nil)
    }

    @Test func setsOfCasesAreComplete() {
        let sets = CaseSets(KindDeclaration.Writer.self)
        for members in [[], [.owner], [.person, .member, .person], KindDeclaration.Writer.allCases] {
            #expect(sets.set(members) == Set(members))
        }
    }

    @Test(arguments: [
        ("(a{100}){100}", "steps"), ("(((((){99}){99}){99}){99}){99}", "steps"), ("a{2000}", "up to 1000"),
        (String(repeating: "(", count: 30) + String(repeating: ")", count: 30), "nested"),
        (String(repeating: "a", count: 201), "200 characters"), ("(a", "without ')'"), ("a)", "without '('"),
        ("[a", "without ']'"), ("(?=a)", "only"), ("(?<n>a)", "only"), ("a\\1", "not supported"),
        ("\\bword", "not supported"), ("\\p{L}", "not supported"), ("*a", "without a character"),
        ("a**", "in a row"), ("[z-a]", "range"), ("a{3,1}", "from 3 to 1"), ("\\", "ends with"), ("^*", "repeats"),
        ("a{,3}", "needs a number"), ("\\u12", "hexadecimal"),
    ]) func unsupportedPatternsAreRefused(text: String, reason: String) {
        let objection = #expect(throws: Pattern.Objection.self) { try Pattern(text) }
        #expect(objection?.description.contains(reason) == true, "\(text): \(objection?.description ?? "")")
    }

    @Test func deepAndWideSchemasAreRefused() throws {
        let deep = (0..<14).reduce("{}") { text, _ in "{\"items\":\(text)}" }
        #expect(try field(deep) == [])
        let deeper = (0..<20).reduce("{}") { text, _ in "{\"items\":\(text)}" }
        #expect(try field(deeper).contains { $0.contains("nested more than 16 deep") })
        let wide = (0..<10_000).map { "\"f\($0)\":{}" }.joined(separator: ",")
        let names = (0..<10_000).map { "\"f\($0)\"" }.joined(separator: ",")
        let found = try problems(
            kind: "{\"realms\":[\"user\"],\"required\":[\(names)],\"properties\":{\(wide)}}")
        #expect(found.contains { $0.text.contains("more than 500 fields") })
        #expect(found.contains { $0.text.contains("more than 500 names") })
        // Few fields at each level, many in all.
        let nested = (0..<3).reduce("{}") { text, _ in
            "{\"properties\":{" + (0..<10).map { "\"p\($0)\":\(text)" }.joined(separator: ",") + "}}"
        }
        #expect(try field(nested).contains { $0.contains("more than 500 fields") })
        let kinds = (0..<101).map { "\"K\($0)\":{}" }.joined(separator: ",")
        #expect(try problems("{\"kinds\":{\(kinds)}}").map(\.description).contains { $0.contains("at most 100") })
    }

    @Test func valuesThatExceedAllLimitsHaveFewProblems() throws {
        var count = 0
        let text = try SchemaValue(Array("{\"items\":{\"type\":\"string\"}}".utf8))
        let (schema, _) = ValueSchema.read(text, at: "", count: &count)
        let values = SchemaValue.list(Array(repeating: .integer(1), count: 100_000))
        #expect(schema.problems(of: values).count == 10)
        let names = try SchemaValue(
            Array(("{\"required\":[" + (0..<400).map { "\"n\($0)\"" }.joined(separator: ",") + "]}").utf8))
        #expect(ValueSchema.read(names, at: "", count: &count).schema.problems(of: .object([])).count == 10)
    }

    @Test(arguments: [
        ("TimeEntry", "Fieldpost has the kind TimeEntry itself"), ("timeentry", "begins with a capital letter"),
        ("TIMEENTRY", "Fieldpost has the kind TimeEntry itself"), ("A-B", "letters and digits"), ("", "letters"),
        ("Ä", "letters and digits"), (String(repeating: "A", count: 64), "1 to 63"),
    ]) func namesAreChecked(name: String, reason: String) throws {
        let found = try problems(kind: "{\"realms\":[\"user\"],\"properties\":{\"a\":{}}}", name: name)
        #expect(found.contains { $0.text.contains(reason) }, "\(found)")
    }

    @Test(arguments: [
        ("{\"type\":\"text\"}", "must be one of null"), ("{\"tipe\":\"string\"}", "did you mean 'type'"),
        ("{\"$ref\":\"#\"}", "is not supported"), ("{\"allOf\":[]}", "is not supported"),
        ("{\"type\":\"integer\",\"minLength\":1}", "has no effect"), ("{\"format\":\"email\"}", "supported are: date"),
        ("{\"enum\":[]}", "1 to 200 values"), ("{\"type\":\"string\",\"enum\":[1]}", "no value of the type"),
        ("{\"minimum\":2,\"maximum\":1}", "above 'maximum'"), ("{\"minLength\":-1}", "whole number from 0"),
        ("{\"items\":{\"readOnly\":true}}", "only for the fields of a kind"), ("1", "must be an object"),
        ("{\"references\":\"image\"}", "needs 'format: uuid'"), ("{\"required\":[\"a\",\"a\"]}", "twice"),
        ("{\"format\":\"uuid\",\"references\":\"Nothing\"}", "neither a kind"), ("{\"maxItems\":1.5}", "whole number"),
    ]) func mistakesAreNamed(schema: String, reason: String) throws {
        let found = try field(schema)
        #expect(found.contains { $0.contains(reason) }, "\(found)")
    }

    @Test(arguments: [
        ("{\"who\":[\"owner\"],\"may\":[\"create\"],\"fields\":[\"b\"]}", "not among the properties"),
        ("{\"who\":[\"owner\"],\"may\":[\"create\"],\"fields\":[\"done\"]}", "read-only"),
        ("{\"who\":[\"member\"],\"may\":[\"create\"]}", "only in realms of the classes: team"),
        ("{\"who\":[\"owner\"],\"may\":[\"create\"],\"realms\":[\"common\"]}", "not among the kind's realms"),
        ("{\"who\":[\"boss\"],\"may\":[\"create\"]}", "allowed are: owner, member"),
        ("{\"who\":[\"owner\"]}", "at least one of: create"), ("{\"may\":[\"create\"]}", "at least one of: owner"),
        ("[]", "must be an object"),
    ]) func permissionsAreChecked(permission: String, reason: String) throws {
        let found = try problems(
            kind: """
                {"realms": ["user"], "properties": {"a": {}, "done": {"readOnly": true}},
                 "permissions": [\(permission)]}
                """)
        #expect(found.contains { $0.text.contains(reason) }, "\(found)")
    }
}
