import Essentials
import KindSchema

/// Parts of source code in the languages of apps.
enum SourceText {
    /// Returns the lines of a doc comment: each line break of the text is one, and long lines are wrapped. Characters
    /// that could end the comment are replaced.
    static func commentLines(_ text: String, widthMax: Int) -> [String] {
        return visible(text).split(whereSeparator: \.isNewline).flatMap { line -> [String] in
            var lines: [String] = []
            for part in line.split(whereSeparator: { $0.isWhitespace || isControl($0) }) {
                if let last = lines.last, last.count + 1 + part.count <= widthMax {
                    lines[lines.count - 1] += " \(part)"
                } else {
                    lines.append(String(part))
                }
            }
            return lines
        }
    }

    /// Returns a text that neither ends nor begins a comment, and is read as it is displayed.
    private static func visible(_ text: String) -> String {
        // By scalars, as compilers read the source: a character may combine `*` with another scalar.
        var visible = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where scalar.properties.generalCategory != .format {
            if let last = visible.last, (last, scalar) == ("*", "/") || (last, scalar) == ("/", "*") {
                visible.append(" ")
            }
            visible.append(scalar)
        }
        return String(visible)
    }

    /// Returns a doc comment of TypeScript or Kotlin; empty without a text.
    static func blockComment(_ text: String?) -> String {
        let lines = commentLines(text ?? "", widthMax: 100)
        guard lines.count > 1 else { return lines.first.map { "/** \($0) */\n" } ?? "" }
        return "/**\n" + lines.map { " * \($0)\n" }.joined() + " */\n"
    }

    private static func isControl(_ character: Character) -> Bool {
        character.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// Returns a text as JSON, which is also a string literal of TypeScript.
    static func json(_ text: String) -> String { SchemaValue.text(text).json }

    /// Returns a string literal of a language with such escapes.
    static func literal(_ text: String, escaped: String, unicode: (UInt32) -> String) -> String {
        var literal = "\""
        for scalar in text.unicodeScalars {
            if escaped.unicodeScalars.contains(scalar) {
                literal += "\\\(scalar)"
            } else if scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) || scalar.value == 0x2028
                || scalar.value == 0x2029
            {
                literal += unicode(scalar.value)
            } else {
                literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "\""
    }

    /// Returns a text with each line indented.
    static func indented(_ text: String, by count: Int = 4) -> String {
        let space = String(repeating: " ", count: count)
        return text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? "" : space + $0 }.joined(separator: "\n")
    }
}

/// The identifiers of one scope of source code. Each is used once.
struct Identifiers {
    /// Identifiers that are escaped with backticks.
    let keywords: Set<String>
    private var used: Set<String>

    /// - Parameter reserved: Identifiers with another meaning in the scope.
    init(keywords: Set<String> = [], reserved: Set<String>) {
        self.keywords = keywords
        used = reserved
    }

    /// Returns an identifier for a name. If it is used already, `_` is appended.
    mutating func add(_ name: String) -> String {
        var identifier = name
        while !used.insert(identifier).inserted { identifier += "_" }
        return keywords.contains(identifier) ? "`\(identifier)`" : identifier
    }

    /// Returns the letters, digits and `_` of a name, as `camelCase`.
    static func camelCase(_ name: String) -> String {
        let parts = name.unicodeScalars.split { scalar in
            !(scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "_"))
        }.map { String(String.UnicodeScalarView($0)) }
        guard let first = parts.first else { return "value" }
        let name = first.prefix(1).lowercased() + first.dropFirst() + parts.dropFirst().map(capitalized).joined()
        return name.first?.isNumber == true || name.allSatisfy { $0 == "_" } ? "value\(name)" : name
    }

    /// Returns a text whose first letter is a capital one.
    static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }
}
