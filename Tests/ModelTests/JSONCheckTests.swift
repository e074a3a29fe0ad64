import Essentials
import Foundation
import Model
import TestSupport
import Testing

@Suite struct JSONCheckTests {
    @Test(arguments: [
        "{}", " { } ", "[]", "null", "true", "false", "0", "-0", "1.5e-3", "1E+64", "\"\"", "\"é €😀\"",
        #""\ud83d\ude00""#,
        #"{"a":{"b":[1,{"c":null}]},"b":"\"\\\/\b\f\n\r\t\u00e9"}"#, #"{"A":1,"a":2}"#,
        #"{"a":{"x":1,"b":{"x":2}},"x":[{"x":1},{"x":2}]}"#,
        "\t\r\n[ 1 , 2 ]", String(repeating: "[", count: 32) + String(repeating: "]", count: 32),
        String(repeating: "9", count: 40),
    ])
    func validJSONPasses(text: String) throws { try JSONCheck.check(Array(text.utf8)) }

    @Test(arguments: [
        ("", JSONError.Reason.endsEarly, 0), ("{", .endsEarly, 1), (#"{"a""#, .endsEarly, 4),
        (#"{"a":"#, .endsEarly, 5),
        ("[1", .endsEarly, 2), ("\"a", .endsEarly, 2), ("tru", .endsEarly, 3), ("-", .endsEarly, 1),
        ("1.", .endsEarly, 2),
        ("1e", .endsEarly, 2), ("{} {}", .trailing, 3), ("1 2", .trailing, 2), ("{a:1}", .unexpected, 1),
        (#"{"a":1,}"#, .unexpected, 7), ("[1,]", .unexpected, 3), ("[1 2]", .unexpected, 3), ("nul!", .unexpected, 3),
        ("NaN", .unexpected, 0), ("+1", .unexpected, 0), ("'a'", .unexpected, 0), ("01", .malformedNumber, 0),
        ("-a", .malformedNumber, 1), ("1.e1", .malformedNumber, 2), ("1e65", .numberTooLarge, 0),
        ("[1e-65]", .numberTooLarge, 1), ("1e99999999999999999999999", .numberTooLarge, 0),
        (String(repeating: "9", count: 105), .numberTooLarge, 0),
        ("0." + String(repeating: "1", count: 104), .numberTooLarge, 0),
        (String(repeating: "9", count: 41) + "e64", .numberTooLarge, 0),
        (#""\u0000""#, .nullCharacter, 1), (#"{"a\u0000":1}"#, .nullCharacter, 3), (#""\ud83d""#, .loneSurrogate, 1),
        (#""\ude00""#, .loneSurrogate, 1), (#""\ud83dx""#, .loneSurrogate, 1), (#""\ud83d\u0041""#, .loneSurrogate, 1),
        (#""\x""#, .malformedEscape, 1), (#""\u12g4""#, .malformedEscape, 1), ("\"\n\"", .controlCharacter, 1),
        ("\"\u{0}\"", .controlCharacter, 1), (String(repeating: "[", count: 33), .nestedTooDeep, 32),
        (#"{"a":"# + String(repeating: "[", count: 32), .nestedTooDeep, 36),
        (#"{"a":1,"b":2,"a":3}"#, .duplicateKey, 14), (#"{"a":1,"\u0061":3}"#, .duplicateKey, 8),
    ])
    func invalidJSONIsRejectedWithOffset(text: String, reason: JSONError.Reason, offset: Int) throws {
        let problem = try #require(throws: JSONError.self) { try JSONCheck.check(Array(text.utf8)) }
        #expect(problem.reason == reason && problem.offset == offset)
    }

    /// The value of duplicate keys would depend on the reader, at any depth.
    @Test(arguments: [
        (#"{"a":1,"a":2}"#, "a", 8), (#"{"a":{"x":1,"x":2}}"#, "a.x", 13), (#"[{"x":1},{"x":1,"x":2}]"#, "[1].x", 17),
        (#"{"a":[0,{"b":{"c":1,"d":{},"c":[]}}]}"#, "a[1].b.c", 28),
        (#"{"a":{"x":1,"\u0078":2}}"#, "a.x", 13), (#"{"a\n":[{"y":{}, "y" :0}]}"#, "a\n[0].y", 18),
        ("[{" + (0..<100).map { "\"\($0)\":0," }.joined() + "\"7\":0}]", "[0].7", 693),
    ])
    func duplicateKeyIsRejectedWithPath(text: String, path: String, offset: Int) throws {
        let bytes = Array(text.utf8)
        let problem = try #require(throws: JSONError.self) { try JSONCheck.check(bytes) }
        #expect(problem.reason == .duplicateKey && problem.path == path && problem.offset == offset, "\(problem)")
        #expect(problem.description.hasPrefix("'\(path)': duplicate key"))
        #expect(throws: problem) { try JSONCheck.checkKeys(ofFile: bytes) }
        #expect(throws: problem) { try JSONCanonical.bytes(of: bytes) }
        let isCanonical = JSONCanonical.isCanonical(bytes.span)
        #expect(!isCanonical)
    }

    /// Values that a file's own reader validates are not validated by the check of its keys.
    @Test(arguments: ["", "nonsense", #"{"a":"\u0000"}"#, #"{"a":1e999}"#, String(repeating: "[", count: 2_000)])
    func checkKeysRejectsOnlyDuplicates(text: String) throws { try JSONCheck.checkKeys(ofFile: Array(text.utf8)) }

    @Test(
        arguments: [
            [0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82],
            [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xE2, 0x82, 0x41],
        ] as [[UInt8]])
    func malformedUTF8IsRejected(bytes: [UInt8]) {
        #expect(throws: JSONError(.malformedUTF8, at: 1)) { try JSONCheck.check([0x22] + bytes + [0x22]) }
    }

    /// Strings are scanned eight bytes at a time: each byte is checked at every offset.
    @Test func everyByteIsCheckedAtEveryOffset() throws {
        for offset in 0..<20 {
            for byte in UInt8.min...UInt8.max {
                var text = Array("\"\(String(repeating: "~", count: 24))\"".utf8)
                text[1 + offset] = byte
                let problem: JSONError? =
                    switch byte {
                    case 0x00...0x1F: JSONError(.controlCharacter, at: 1 + offset)
                    case UInt8(ascii: "\""): JSONError(.trailing, at: 2 + offset)
                    case UInt8(ascii: "\\"): JSONError(.malformedEscape, at: 1 + offset)
                    case 0x80...0xFF: JSONError(.malformedUTF8, at: 1 + offset)
                    default: nil
                    }
                if let problem {
                    #expect(throws: problem) { try JSONCheck.check(text) }
                } else {
                    try JSONCheck.check(text)
                }
                #expect(JSONCanonical.isCanonical(text.span) == (problem == nil))
            }
        }
    }

    @Test func everyScalarPassesAndSwappedBytesFail() throws {
        for value in stride(from: UInt32(0x80), through: 0x10FFFF, by: 97) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let bytes = Array(String(scalar).utf8)
            try JSONCheck.check([0x22] + bytes + [0x22])
            #expect(throws: JSONError.self) { try JSONCheck.check([0x22] + bytes.reversed() + [0x22]) }
        }
    }

    @Test func membersAreSlicesOfTheBytes() throws {
        let bytes = Array(#" { "a" : [1, 2] ,"b\u00e9\n":"x","\ud83d\ude00\"" : {"c":0} } "#.utf8)
        let members = try JSONCheck.members(of: bytes)
        #expect(members.map(\.key) == ["a", "bé\n", "😀\""])
        #expect(members.map { String(decoding: bytes[$0.value], as: UTF8.self) } == ["[1, 2]", "\"x\"", #"{"c":0}"#])
        #expect(try JSONCheck.members(of: Array("{}".utf8)).isEmpty)
        #expect(throws: JSONError(.notAnObject, at: 0)) { try JSONCheck.members(of: Array("[]".utf8)) }
        #expect(throws: JSONError(.notAnObject, at: 0)) { try JSONCheck.members(of: []) }
    }

    @Test func memberCountIsLimited() throws {
        let object = { (count: Int) in
            Array(("{" + (0..<count).map { "\"\($0)\":0" }.joined(separator: ",") + "}").utf8)
        }
        #expect(try JSONCheck.members(of: object(512)).count == 512)
        #expect(throws: JSONError.self) { try JSONCheck.check(object(513)) }
        for count in [1, 23, 24, 25, 100] {
            for key in ["0", #"\u0030"#, "\(count - 1)"] {
                let text = String(decoding: object(count).dropLast(), as: UTF8.self) + ",\"\(key)\":0}"
                let offset = object(count).count + 1
                let problem = try #require(throws: JSONError.self) { try JSONCheck.check(Array(text.utf8)) }
                #expect(problem.reason == .duplicateKey && problem.offset == offset)
            }
        }
    }

    @Test func elementsAreSlicesOfTheBytes() throws {
        let bytes = Array(#" [ 1 , {"a":[]}, "x" ] "#.utf8)
        let elements = try JSONCheck.elements(of: bytes)
        #expect(elements.map { String(decoding: bytes[$0], as: UTF8.self) } == ["1", #"{"a":[]}"#, "\"x\""])
        #expect(throws: JSONError.self) { try JSONCheck.elements(of: Array("{}".utf8)) }
    }

    @Test func mergingReplacesAddsAndKeepsMembers() throws {
        let stored = try JSONObject(Array(#"{"a": 1, "b":[2], "c":"x"}"#.utf8))
        let patch = try JSONObject(Array(#"{ "b":null, "d":{"e":1} }"#.utf8))
        #expect(String(decoding: stored.merging(patch), as: UTF8.self) == #"{"a":1,"b":null,"c":"x","d":{"e":1}}"#)
        let empty = try JSONObject(Array("{}".utf8))
        #expect(String(decoding: empty.merging(empty), as: UTF8.self) == "{}")
    }

    /// For any bytes, the check terminates, reports an offset inside them, and agrees with an independent parser:
    /// Foundation can decode what passes, and what Foundation cannot decode does not pass.
    @Test(arguments: [UInt64(1), 20_150_330, 811_213]) func damagedJSONIsAcceptedAsByFoundation(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let sample = Array(try golden("TimeEntry.v1"))
        var passed = 0
        for _ in 0..<4000 {
            var bytes = sample
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let offset = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[offset] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: offset)
                case 2: bytes.insert(Array("\"\\{}[],:0e-. \u{1}".utf8).randomElement(using: &random) ?? 0, at: offset)
                default: bytes.removeLast(Int.random(in: 1...bytes.count / 2, using: &random))
                }
            }
            do {
                try JSONCheck.check(bytes)
                passed += 1
                _ = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
            } catch let problem as JSONError {
                try #require((0...bytes.count).contains(problem.offset), "seed \(seed)")
            }
        }
        #expect(passed > 100, "seed \(seed): damage inside strings leaves valid JSON")
    }
}
