import Essentials
import FoundationEssentials
import KindSchema

/// A field of a ``RandomKind``: its schema, values of it, and an evaluation that is independent of the services'.
struct RandomField: Sendable {
    enum Form: CaseIterable, Sendable {
        case text, integer, number, flag, choice, day, image, images, texts, structure
    }

    let name: String
    let form: Form
    var isReadOnly = false
    /// The first version of the file that has the field.
    var version = 1

    private static let image = #""type":"string","format":"uuid","references":"image""#
    private static let texts = ["Roof", #"Gate \"A\""#, "Straße 7 → 8", #"C:\\temp"#]
    private static let (lengthMax, countMax, numberMax) = (20, 3, Int64(1_000))

    /// The values of ``Form/choice``: a later version has another one.
    private static func choices(_ version: Int) -> [String] {
        ["draft", "sent"] + (version == 1 ? [] : ["closed"])
    }

    /// Returns the schema in a version of the file.
    func schema(_ version: Int) -> String {
        let type =
            switch form {
            case .text: #""type":"string","maxLength":\#(Self.lengthMax)"#
            case .integer: #""type":["integer","null"],"minimum":0,"maximum":\#(Self.numberMax)"#
            case .number: #""type":"number""#
            case .flag: #""type":"boolean""#
            case .choice: #""enum":[\#(Self.choices(version).map { "\"\($0)\"" }.joined(separator: ","))]"#
            case .day: #""type":["string","null"],"format":"date""#
            case .image: Self.image
            case .images: #""type":"array","maxItems":\#(Self.countMax),"items":{\#(Self.image)}"#
            case .texts: #""type":"array","maxItems":\#(Self.countMax),"items":{"type":"string"}"#
            case .structure: #""type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false"#
            }
        return isReadOnly ? "{\(type),\"readOnly\":true}" : "{\(type)}"
    }

    /// Returns a random valid value as JSON.
    func value(_ version: Int, _ random: inout SplitMix64) -> String {
        func list(_ element: (inout SplitMix64) -> String) -> String {
            let count = Int.random(in: 0...Self.countMax, using: &random)
            return "[\((0..<count).map { _ in element(&random) }.joined(separator: ","))]"
        }
        func text(_ random: inout SplitMix64) -> String { "\"\(Self.texts.randomElement(using: &random) ?? "")\"" }
        func image(_ random: inout SplitMix64) -> String { "\"\(random.id().text)\"" }
        return switch form {
        case .text: text(&random)
        case .integer: "\(Int64.random(in: 0...Self.numberMax, using: &random))"
        case .number: "\(Int.random(in: -50...50, using: &random)).5"
        case .flag: "\(random.happens(50))"
        case .choice: "\"\(Self.choices(version).randomElement(using: &random) ?? "")\""
        case .day: "\"2026-03-\(Int.random(in: 10...31, using: &random))\""
        case .image: image(&random)
        case .images: list(image)
        case .texts: list(text)
        case .structure: #"{"a":\#(Int.random(in: 0..<9, using: &random))}"#
        }
    }

    /// A value that no version allows.
    var invalidValue: String {
        switch form {
        case .text, .choice, .day, .texts, .structure: "7"
        case .integer, .number, .flag, .image, .images: "\"wrong\""
        }
    }

    /// Whether a version allows a value of an object's field, which may also be null.
    func allows(_ value: SchemaValue, _ version: Int) -> Bool {
        func isImage(_ value: SchemaValue) -> Bool {
            if case .text(let text) = value { UUID(uuidString: text) != nil } else { false }
        }
        switch (form, value) {
        case (_, .null), (.flag, .bool), (.number, .number), (.number, .integer): return true
        case (.text, .text(let text)): return text.count <= Self.lengthMax
        case (.integer, .integer(let number)): return (0...Self.numberMax).contains(number)
        case (.choice, .text(let text)): return Self.choices(version).contains(text)
        case (.day, .text(let text)): return text.hasPrefix("2026-03-")
        case (.image, _): return isImage(value)
        case (.images, .list(let values)): return values.count <= Self.countMax && values.allSatisfy(isImage)
        case (.texts, .list(let values)):
            return values.count <= Self.countMax
                && values.allSatisfy { if case .text = $0 { true } else { false } }
        case (.structure, .object(let members)):
            return members.allSatisfy { member in
                if case .integer = member.value { member.name == "a" } else { false }
            }
        default: return false
        }
    }

    /// The images to which a value refers.
    func images(in value: SchemaValue) -> [UUID] {
        switch (form, value) {
        case (.image, .text(let text)): [UUID(uuidString: text)].compactMap(\.self)
        case (.images, .list(let values)):
            values.compactMap { if case .text(let text) = $0 { UUID(uuidString: text) } else { nil } }
        default: []
        }
    }
}
