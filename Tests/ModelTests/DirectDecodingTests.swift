import Essentials
import FoundationEssentials
import Model
import Testing

/// `JSONObject.decoded(as:)` gives the same values as the decoder.
@Suite struct DirectDecodingTests {
    private static let decoder = JSONDecoder()

    private static let record = [
        ("backendId", #""000000004711""#), ("marker", ##""#AAECAw""##), ("day", #""2015-03-30""#),
        ("durationSeconds", "5400"), ("text", #""sur\"vey \u00e6ø""#), ("status", #""rejected""#),
        ("references", #"{"Accounting code": "P1.2", "Project": "7\/8"}"#), ("message", #""reason 1""#),
        ("version", #""3""#), ("toldRun", "18"),
    ]

    private static let entry = [
        ("backendId", #""000000004711""#), ("status", #""released""#), ("text", #""Besøg hos \"DSB\"""#),
        ("reportingTemplate", #""5f0d4a52-65a4-4c39-8d8e-5c1f8a1c1b10""#),
        (
            "reporting",
            #"""
            [{"node": "ac7bccce-190e-4679-ab67-cc17826f1f67", "context": "ecede996-1b85-45dc-9ee0-89da88f97441"},
             {"context": "0EEC02FB-8463-4E4C-AE50-DD6A377A270C", "node": "19aef05b-027b-4836-9eb3-7683294a5d2a"}]
            """#
        ), ("timeType", #""duration""#), ("entryDate", #""2015-03-30""#), ("durationSeconds", "5400"),
        ("createdOn", #""2015-03-29""#), ("submitRequested", "true"), ("deleteRequested", "false"),
        ("statusAt", #""2015-03-30T14:00:00.007Z""#),
    ]

    private static let others = [
        "null", "5", "-1", "1.5", "5.4e3", "99999999999999999999", "true", "false", #""x""#, #""""#, "[]", "{}",
        #"{"a": 1}"#, #"[{"context": "x"}]"#, "[5]", #""2015-02-30""#, #""interval""#, #""draft""#,
        #""2015-03-30T14:00:00Z""#,
    ]

    @Test func completeObjectsAreDecoded() throws {
        let record: SeenRecord = try JSONObject(Self.json(Self.record)).decoded(as: SeenRecord.self)
        #expect(try record == Self.decode(Self.json(Self.record)))
        let interval = [
            ("startTime", #""2015-03-30T08:00:00-04:00""#), ("endTime", #""2015-03-30T09:30:00-04:00""#),
        ]
        for fields in [Self.json(Self.entry), Self.json(Self.entry + interval)] {
            let entry = try JSONObject(fields).decoded(as: TimeEntry.self)
            #expect(try entry == Self.decode(fields))
        }
    }

    /// One field at a time is missing, duplicated, or has another type.
    @Test func changedObjectsEqualDecodedObjects() {
        for (index, field) in Self.record.enumerated() {
            for fields in Self.changes(of: field.0, at: index, in: Self.record) {
                Self.compare(SeenRecord.self, fields)
            }
        }
        for (index, field) in Self.entry.enumerated() {
            for fields in Self.changes(of: field.0, at: index, in: Self.entry) {
                Self.compare(TimeEntry.self, fields)
            }
        }
        for text in ["", "[]", "5", "{", #"{"backendId": "1"}"#, "{}"] {
            Self.compare(SeenRecord.self, Array(text.utf8))
            Self.compare(TimeEntry.self, Array(text.utf8))
        }
    }

    private static func changes(
        of name: String, at index: Int, in fields: [(String, String)]
    ) -> [[UInt8]] {
        var without = fields
        without.remove(at: index)
        let changed = others.map { other in
            var changed = fields
            changed[index].1 = other
            return changed
        }
        return ([without, fields + [fields[index]], fields + [("other", "[]")]] + changed).map(json)
    }

    /// Asserts that both give the same value, or that the decoder is needed.
    private static func compare<Fields: Decodable & Equatable>(_ type: Fields.Type, _ fields: [UInt8]) {
        guard let object = try? JSONObject(fields), let direct = try? object.decoded(as: type) else { return }
        let decoded: Fields? = try? decode(fields)
        #expect(direct == decoded, "\(String(decoding: fields, as: UTF8.self))")
    }

    private static func decode<Fields: Decodable>(_ fields: [UInt8]) throws -> Fields {
        try decoder.decode(Fields.self, from: Data(fields))
    }

    private static func json(_ fields: [(String, String)]) -> [UInt8] {
        Array(("{" + fields.map { "\"\($0)\": \($1)" }.joined(separator: ", ") + "}").utf8)
    }
}
