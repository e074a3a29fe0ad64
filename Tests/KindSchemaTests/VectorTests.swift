import Essentials
import Foundation
import TestSupport
import Testing

@testable import KindSchema

/// The supported keywords of JSON Schema, each with values that are valid and invalid.
@Suite(.ownThreads) struct VectorTests {
    private static let vectors: [SchemaValue] = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "vectors.json")
        let value = (try? Data(contentsOf: file)).flatMap { try? SchemaValue(Array($0)) }
        return value?.values ?? []
    }()

    @Test(arguments: vectors.indices) func verdictsAreAsSpecified(index: Int) throws {
        let vector = Self.vectors[index]
        let text = try #require(vector["schema"])
        var count = 0
        let (schema, problems) = ValueSchema.read(text, at: "", count: &count)
        #expect(problems == [])
        for isValid in [true, false] {
            for value in try #require(vector[isValid ? "valid" : "invalid"]?.values) {
                let json = try #require(value.text)
                let problems = schema.problems(of: try SchemaValue(Array(json.utf8)))
                #expect(problems.isEmpty == isValid, "\(text.json): \(json): \(problems)")
            }
        }
    }

    @Test func allKeywordsHaveVectors() {
        let used = Set(Self.vectors.flatMap { $0["schema"]?.members?.map(\.name) ?? [] })
        #expect(Set(ValueSchema.keywords).subtracting(used) == ["references", "readOnly"])
    }

    @Test(arguments: [
        ("{\"photos\":[\"a\",\"b\",\"toolong\"]}", "/photos/2: has 7 characters; at most 3 are allowed"),
        ("{\"state\":\"x\"}", "/state: must be one of \"draft\", \"sent\""),
        ("{\"a/b\":1}", "/a~1b: is unknown; allowed are: photos, state, size"),
        ("{\"size\":{\"width\":1}}", "/size: needs 'height'"),
        ("{\"size\":null}", "/size: must be object, not null"), ("[]", "the value must be object, not an array"),
    ]) func problemsNameTheirLocation(json: String, expected: String) throws {
        let text = """
            {"type": "object", "additionalProperties": false, "properties": {
              "photos": {"type": "array", "items": {"type": "string", "maxLength": 3}},
              "state": {"enum": ["draft", "sent"]},
              "size": {"type": "object", "required": ["height"], "properties": {"height": {}, "width": {}}}}}
            """
        var count = 0
        let (schema, problems) = ValueSchema.read(try SchemaValue(Array(text.utf8)), at: "", count: &count)
        #expect(problems == [])
        #expect(schema.problems(of: try SchemaValue(Array(json.utf8))).map(\.description) == [expected])
    }
}
