import Essentials
import Postgres
import TestSupport
import Testing

/// The canonical form equals that of PostgreSQL, which wrote the content of existing databases and topics.
@Suite(.ownThreads) struct CanonicalJSONTests {
    @Test(arguments: Seeds.random(4, for: "canonical JSON")) func canonicalFormEqualsPostgreSQLs(seed: UInt64) throws {
        var connection = try Connection(TestServer.shared.makeDatabase())
        var random = RandomJSON(seed: seed)
        for _ in 0..<10 {
            let texts = (0..<250).map { _ in random.value(depth: 0) }
            let rows = try connection.run(
                "SELECT t::jsonb::text FROM unnest(\(texts)) WITH ORDINALITY AS u(t, n) ORDER BY n")
            for (text, expected) in zip(texts, try rows.decode(String.self)) {
                let canonical = try CanonicalJSON(text)
                #expect(String(decoding: canonical.bytes, as: UTF8.self) == expected, "\(text)")
                #expect(try CanonicalJSON(canonical.bytes) == canonical)
            }
        }
    }

    @Test(arguments: [
        (#"{"b":1,"a":{"d":[],"c":{}}}"#, #"{"a": {"c": {}, "d": []}, "b": 1}"#),
        (#"{"aa":1,"b":2}"#, #"{"b": 2, "aa": 1}"#),
        (#"{"t":"\u00e4\/\u000a\u001f\ud83d\ude00"}"#, #"{"t": "ä/\n\u001f😀"}"#),
        (#"[1e2,1.50,-0,-0.0,1.5e-3,1E+0,0e5,12e-1,0.00e1]"#, "[100, 1.50, 0, 0.0, 0.0015, 1, 0, 1.2, 0.0]"),
    ])
    func examples(json: String, canonical: String) throws {
        #expect(String(decoding: try CanonicalJSON(json).bytes, as: UTF8.self) == canonical)
    }

    /// Canonical JSON is detected without rewriting it, which applies to nearly all stored JSON.
    @Test(arguments: [
        #"{"a": 1}"#, #"{"b": 1, "aa": [true, null, "x\n\"y\\"]}"#, #"{}"#, #"{"n": -1.50}"#, #"{"ä": "ö"}"#,
    ])
    func canonicalJSONIsDetected(json: String) {
        let isCanonical = JSONCanonical.isCanonical(Array(json.utf8).span)
        #expect(isCanonical)
    }

    @Test(arguments: [
        #"{"a":1}"#, #"{"aa": 1, "b": 2}"#, #"{"a": 1, "a": 1}"#, #"{"a": 1e2}"#, #"{"a": -0}"#, #"{"a": "\/"}"#,
        #"{"a": 1} "#, #"{"a": 01}"#, #"{"a": "\u0000"}"#, #"{"a": 1"#, "",
    ])
    func nonCanonicalJSONIsDetected(json: String) {
        let isCanonical = JSONCanonical.isCanonical(Array(json.utf8).span)
        #expect(!isCanonical)
    }

    @Test func mergingReplacesAndAddsMembers() throws {
        let stored = try CanonicalJSON(#"{"a":1,"c":{"x":1}}"#)
        let merged = try stored.merging(CanonicalJSON(#"{"c":{"y":2},"b":null}"#))
        #expect(try merged == CanonicalJSON(#"{"a":1,"b":null,"c":{"y":2}}"#))
        #expect(throws: JSONError.self) { try stored.merging(CanonicalJSON("[1]")) }
    }
}

/// Random JSON in all forms: escapes, blanks, exponents.
private struct RandomJSON {
    private var random: SplitMix64
    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func value(depth: Int) -> String {
        switch Int.random(in: 0..<(depth < 4 ? 9 : 6), using: &random) {
        case 0: return "null"
        case 1: return Bool.random(using: &random) ? "true" : "false"
        case 2, 3: return number()
        case 4, 5: return string()
        case 6: return "[" + blank() + list { $0.value(depth: depth + 1) } + blank() + "]"
        default:
            var count = 0
            return "{" + blank()
                + list { json in
                    count += 1
                    let key = json.string().dropLast() + "\(count)\""
                    return key + json.blank() + ":" + json.blank() + json.value(depth: depth + 1)
                } + blank() + "}"
        }
    }

    private mutating func list(_ make: (inout Self) -> String) -> String {
        var items: [String] = []
        for _ in 0..<Int.random(in: 0...5, using: &random) { items.append(make(&self)) }
        return items.joined(separator: blank() + "," + blank())
    }

    private mutating func blank() -> String { ["", "", " ", "\n\t", "\r "].randomElement(using: &random) ?? "" }

    private mutating func digits(_ range: ClosedRange<Int>) -> String {
        var digits = ""
        for _ in 0..<Int.random(in: range, using: &random) { digits += String(Int.random(in: 0...9, using: &random)) }
        return digits
    }

    private mutating func number() -> String {
        let whole = Bool.random(using: &random) ? "0" : String(Int.random(in: 1...9, using: &random)) + digits(0...12)
        let fraction = Bool.random(using: &random) ? "." + digits(1...12) : ""
        let signs = ["", "+", "-"]
        let exponent =
            Int.random(in: 0..<3, using: &random) == 0
            ? (Bool.random(using: &random) ? "e" : "E") + (signs.randomElement(using: &random) ?? "")
                + String(Int.random(in: 0...64, using: &random)) : ""
        return (Bool.random(using: &random) ? "-" : "") + whole + fraction + exponent
    }

    private static let characters = [
        "a", "b", "Z", " ", "é", "日", "😀", #"\""#, #"\\"#, #"\/"#, #"\b"#, #"\f"#, #"\n"#, #"\r"#, #"\t"#, #"\u0001"#,
        #"\u001F"#, #"\u007f"#, "\u{7f}", #"\u00E9"#, #"\ud83d\uDE00"#, #"\u2028"#, #"\u0022"#, #"\u005c"#, #"\u0041"#,
    ]

    mutating func string() -> String {
        var text = ""
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            text += Self.characters.randomElement(using: &random) ?? ""
        }
        return "\"\(text)\""
    }
}
