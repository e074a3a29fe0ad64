import Essentials
import Foundation
import TestSupport
import Testing

@testable import Model

/// Decoding of fields from their bytes compared with `JSONDecoder`, and the normalised form in which they are stored.
@Suite struct FieldsReaderTests {
    /// Fields are accepted exactly if `JSONDecoder` accepts them; in addition, unknown members of nested objects with
    /// closed keys are rejected.
    @Test(arguments: Kind.allCases) func fieldsAreAcceptedAsByJSONDecoder(kind: Kind) throws {
        let id = UUID().text
        let values = [
            "null", "true", #""""#, #""x""#, "0", "-1", "7.0", "7.5", "-0.0", "1e2", "123456789012345678", "91", "[]",
            "{}", #""\#(id)""#, #""\#(id.uppercased())""#, #""2019-04-16T16:00:00.000Z""#, #""2019-04-16""#,
            #""a\u00e9\n""#, #"["\#(id)"]"#, #"["\#(id)",7]"#, #"[7.0]"#, #"{"a":"b"}"#, #"{"a":["b"]}"#, #"{"a":1}"#,
            #"{"latitude": 34.122410552712, "longitude": -118.1, "street": "S"}"#, #"{"latitude": 34}"#, #""draft""#,
            #""Note""#, #""worker""#, #"[{"name":"S","items":["\#(id)"]}]"#, #"[{"name":7}]"#,
            #"[{"context":"\#(id)","node":"\#(id)"}]"#,
        ]
        let golden = try JSONObject(Array(try Data(contentsOf: golden(kind))))
        let good = Dictionary(
            uniqueKeysWithValues: golden.members.map {
                ($0.key, String(decoding: golden.bytes[$0.value], as: UTF8.self))
            })
        #expect(try kind.checked(golden) == golden)
        let type: any KindFields.Type = try #require(kind.row.fields)
        for name in kind.fieldNames {
            for value in values {
                var fields = good
                fields[name] = value
                let json = Array(("{" + fields.map { "\"\($0)\": \($1)" }.joined(separator: ",") + "}").utf8)
                #expect(
                    (kind.objection(to: json) == nil) == Self.isDecoded(json, as: type),
                    "\(kind) \(name): \(value): \(kind.objection(to: json) ?? "accepted")")
            }
        }
    }

    @Test func oversizedNestedObjectIsRejected() throws {
        for count in [512, 513] {
            let members = (0..<count).map { #""field\#($0)":"value""# }.joined(separator: ",")
            let json = Array(#"{"operation":"choices","fields":{\#(members)}}"#.utf8)
            let problem = try #require(Kind.defectCommand.objection(to: json))
            #expect(problem.contains(count == 512 ? "at most 200 fields" : "'fields' must be an object of at most 512"))
        }
    }

    @Test(arguments: [
        (Kind.fieldTask, #"{"title":"x","place":{"LONG":1}}"#),
        (.defectCommand, #"{"operation":"modify","fields":{"LONG":1}}"#),
        (.team, #"{"name":{"LONG":1,"LONG":2}}"#), (.team, #"{"LONG":1,"LONG":2}"#),
    ]) func longNameIsTruncatedInError(kind: Kind, json: String) throws {
        // One character.
        let name = "x" + String(repeating: "\u{301}", count: 20_000)
        let problem = try #require(kind.objection(to: Array(json.replacing("LONG", with: name).utf8)))
        #expect(problem.unicodeScalars.contains("\u{301}") && problem.utf8.count < 500, "\(problem.utf8.count) bytes")
    }

    private static func isDecoded<Fields: KindFields>(_ json: [UInt8], as type: Fields.Type) -> Bool {
        (try? JSONDecoder().decode(type, from: Data(json)))?.objection == nil
            && (try? JSONDecoder().decode(type, from: Data(json))) != nil
    }

    private func golden(_ kind: Kind) -> URL {
        projectFolder.appendingPathComponent("Tests/ModelTests/Golden/\(kind.rawValue).v1.json")
    }

    @Test(arguments: [
        (Kind.appointment, #"{"why":"x","when":"2026-03-30T10:00:00Z","durationMinutes":9e1}"#, "90"),
        (.appointment, #"{"why":"x","when":"2026-03-30T10:00:00Z","durationMinutes":90.0}"#, "90"),
        (.timeEntry, #"{"durationSeconds":36.00e2}"#, "3600"), (.timeEntry, #"{"durationSeconds":-0.0}"#, "0"),
        (
            .reportingContext,
            #"{"name":"x","preselected":["8F4B9A9E-0A51-4A0E-9F0C-2F3A7B1F6C11"],"#
                + #""sections":[{"name":"S","showCount":5.0}]}"#,
            #"["8f4b9a9e-0a51-4a0e-9f0c-2f3a7b1f6c11"],"sections":[{"name":"S","showCount":5}]"#
        ),
        (
            .timeEntry,
            #"{"reporting":[{"context":"8F4B9A9E-0A51-4A0E-9F0C-2F3A7B1F6C11","#
                + #""node":"8f4b9a9e-0a51-4a0e-9f0c-2f3a7b1f6c11"}]}"#,
            #"{"context":"8f4b9a9e-0a51-4a0e-9f0c-2f3a7b1f6c11","node":"8f4b9a9e-0a51-4a0e-9f0c-2f3a7b1f6c11"}"#
        ),
    ])
    func idsAndWholeNumbersAreStoredInOneForm(kind: Kind, json: String, stored: String) throws {
        let checked = try kind.checked(try JSONObject(Array(json.utf8)))
        let text = String(decoding: checked.bytes, as: UTF8.self)
        #expect(text.contains(stored), "\(text)")
        #expect(try kind.checked(checked) == checked)
    }

    @Test(arguments: [
        (Kind.appointment, #"{"why":"x","when":7,"durationMinutes":1}"#, "'when' must be a time such as"),
        (
            .appointment, #"{"why":"x","when":"2026-03-30T10:00:00Z","durationMinutes":1.5}"#,
            "'durationMinutes' must be a whole number"
        ),
        (
            .appointment, #"{"why":"x","when":"2026-03-30T10:00:00Z","durationMinutes":4e9}"#,
            "'durationMinutes' must be from 0 to"
        ),
        (.person, #"{"role":"king"}"#, "'role' must be one of admin, manager, worker"),
        (.fieldTask, #"{"title":"x","place":{"x":1}}"#, "'place' has no field 'x'; allowed are: latitude"),
        (.fieldTask, #"{"title":"x","place":{}}"#, "'place' must have latitude and longitude, title"),
        (.fieldTask, #"{"title":"x","place":{"latitude":"1"}}"#, "'place.latitude' must be a number"),
        (.fieldTask, #"{"title":"x","place":{"countryCode":"DNK"}}"#, "'place.countryCode' must be two letters"),
        (.fieldTask, #"{"title":"x","place":7}"#, "'place' must be an object"),
        (.reportingContext, #"{"name":"x","preselected":["a"]}"#, "'preselected[0]' must be a UUID"),
        (.reportingContext, #"{"name":"x","sections":[{"name":"a"},{}]}"#, "'sections[1].name' is missing"),
        (.reportingContext, #"{"name":"x","sections":{}}"#, "'sections' must be a list"),
        (.team, #"{"name":"x","backgroundColor":"red"}"#, "'backgroundColor' must be six hexadecimal digits"),
        (.team, #"{"name":"x","backgroundColor":"١٢٣٤٥٦"}"#, "'backgroundColor' must be six hexadecimal digits"),
        (.personLookup, #"{"name":"x","email":"Ana@b.example"}"#, "'email' must be an e-mail address in lower case"),
        (.defectCommand, #"{"operation":"modify","fields":{"a":1}}"#, "'fields.a' must be a text"),
    ])
    func errorNamesPathAndAllowedValues(kind: Kind, json: String, problem: String) {
        let objection = kind.objection(to: Array(json.utf8))
        #expect(objection?.hasPrefix(problem) == true, "\(objection ?? "accepted")")
    }

    /// A stored value that current rules reject does not block writes of other fields.
    @Test func storedInvalidFieldDoesNotBlockOtherWrites() throws {
        let stored = try JSONObject(Array(#"{"name":"x","backgroundColor":"red","image":7}"#.utf8))
        #expect(throws: FieldObjection.self) { try Kind.team.checked(stored) }
        #expect(throws: FieldObjection.self) { try Kind.team.checked(stored, given: ["image"]) }
        #expect(try Kind.team.checked(stored, given: ["name"]).text(of: "name") == "x")
        // A name without a visible character, which was accepted before: it is required, so it cannot be omitted.
        let invisible = try JSONObject(Array(#"{"name":"\u200b","backgroundColor":"red","teamDescription":"x"}"#.utf8))
        let written = try Kind.team.checked(invisible, given: ["teamDescription"])
        #expect(written.text(of: "teamDescription") == "x")
        for given in ["name", "backgroundColor"] as Set<String> {
            #expect(throws: FieldObjection.self) { try Kind.team.checked(invisible, given: [given]) }
        }
        let nameless = try JSONObject(Array(#"{"backgroundColor":"red"}"#.utf8))
        #expect(throws: FieldObjection("'name' is missing")) { try Kind.team.checked(nameless, given: ["image"]) }
    }

    @Test(
        arguments: [
            ("0", 0), ("-0", 0), ("7", 7), ("-7.00", -7), ("3.6e3", 3600), ("36000E-1", 3600), ("1e0", 1),
            ("9223372036854775807", Int64.max), ("9223372036854775807.0", .max), ("9223372036854775808", nil),
            ("1e19", nil),
            ("7.5", nil), ("1e-1", nil), ("\"7\"", nil), ("", nil), ("07", nil), ("+7", nil), ("7.", nil),
            ("null", nil),
            ("0x10", nil), ("1e64", nil), ("1e999", nil), ("--7", nil),
        ] as [(String, Int64?)])
    func wholeNumbersInAllForms(text: String, number: Int64?) {
        #expect(JSONNumber.whole(Array(text.utf8)[...]) == number)
    }

    @Test func pathsHaveSmallIDs() throws {
        let id = try #require(UUID(uuidString: "8F4B9A9E-0A51-4A0E-9F0C-2F3A7B1F6C11"))
        for (path, small) in [
            ("/teams/\(id)", RealmPath.team(id)), ("/catalogues/\(id)", .catalogue(id)), ("/shares/\(id)", .share(id)),
        ] {
            #expect(RealmPath(path) == small)
        }
        #expect(RealmPath("/teams/X")?.description == "/teams/X")
    }
}
