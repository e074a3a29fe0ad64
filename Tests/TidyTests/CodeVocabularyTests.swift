import Foundation
import Testing

/// Full-line comments, declared names and, outside of tests, texts in Swift files use the standard terms of the field.
@Suite struct CodeVocabularyTests {
    /// A use of a banned term in a file.
    struct Use: CustomStringConvertible {
        let path: String
        let line: Int
        let phrase: String

        var description: String { "\(path):\(line): “\(phrase)”" }
    }

    /// Uses that are left in a folder and the folders in it; the longest prefix counts. The numbers only shrink.
    private static let limits: [String: Int] = [
        "Services/": 0,
        "Shared/": 10,
        "Tools/": 4,
        "Tests/": 3,
    ]

    /// Parts of names, in lower case.
    private static let nameParts = [
        "told", "tells?", "heard", "hears?", "ask(?:s|ed|ing)?", "wants?|wanted", "anew", "whoever|whatever",
        "(?:no|some|any|every)body", "looks?(?! up)", "turns?", "news", "beside", "stand in", "mend(?:s|ed)?",
        "vouch(?:es|ed)?",
        "signposts?", "fares", "chaos|tortures?", "complaints?", "forgets?", "remembers?", "said|says", "away", "begun",
        "strangers?", "comes|goes",
    ]

    private static func expression(_ patterns: [String]) throws -> NSRegularExpression {
        let pattern = patterns.map { "(?:\($0.replacing(" ", with: "[ \\n]")))" }.joined(separator: "|")
        return try NSRegularExpression(pattern: "\\b(?:\(pattern))\\b", options: .caseInsensitive)
    }

    private static func phrases(_ text: String, _ expression: NSRegularExpression) -> [(line: Int, phrase: String)] {
        var found: [(line: Int, phrase: String)] = []
        for match in expression.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
            guard let range = Range(match.range, in: text) else { continue }
            let line = text[..<range.lowerBound].count { $0 == "\n" } + 1
            found.append((line, String(text[range]).replacing("\n", with: " ")))
        }
        return found
    }

    @Test func codeUsesStandardTerms() throws {
        let terms = try Self.expression(VocabularyTests.terms.map(\.pattern))
        let parts = try Self.expression(Self.nameParts)
        var uses: [String: [Use]] = [:]
        for file in SourceFile.all {
            let area = Self.limits.keys.filter(file.path.hasPrefix).max { $0.count < $1.count } ?? file.path
            var found = Self.phrases(file.commentText, terms)
            if !file.path.hasPrefix("Tests/") { found += Self.phrases(file.literalText, terms) }
            found += Self.phrases(file.nameText, parts)
            uses[area, default: []] += found.map { Use(path: file.path, line: $0.line, phrase: $0.phrase) }
        }
        for (area, limit) in Self.limits {
            let found = uses[area] ?? []
            if found.count > limit {
                let list = found.map(\.description).joined(separator: "\n")
                Issue.record("\(area): \(found.count) uses of banned terms, more than \(limit):\n\(list)")
            }
            if found.count < limit { Issue.record("\(area): lower the limit \(limit) to \(found.count)") }
        }
        #expect(Set(uses.keys).isSubset(of: Self.limits.keys))
    }

    @Test func docCommentsNameTheSubjectFirst() {
        #expect(SourceFile.all.count > 1_000)
        for file in SourceFile.all {
            var isInside = false
            for (index, line) in file.lines.enumerated() {
                let text = line.drop { $0 == " " }
                defer { isInside = text.hasPrefix("///") }
                guard text.hasPrefix("/// "), !isInside else { continue }
                let opening = String(text.dropFirst(4).prefix { $0.isLetter })
                if VocabularyTests.openings.contains(opening) {
                    Issue.record("\(file.path):\(index + 1): begins with “\(opening)”")
                }
            }
        }
    }

    @Test func testNamesBeginWithTheSubject() {
        for file in SourceFile.all where file.path.hasPrefix("Tests/") {
            for match in file.text.matches(of: /@Test(?:\([^\n]*\))?\s+func `?((?:what|who|one|it)[A-Z]\w*)/) {
                Issue.record("\(file.path): \(match.output.1): begin with the subject")
            }
        }
    }
}

extension SourceFile {
    /// Comments without code in backticks; other lines are empty.
    fileprivate var commentText: String {
        let code = /`[^`]*`/
        return lines.map { line in
            let text = line.drop { $0 == " " }
            guard text.hasPrefix("//") else { return "" }
            let comment = String(text.drop { $0 == "/" || $0 == " " })
            return comment.containsBytes(of: "`") ? comment.replacing(code, with: "§") : comment
        }.joined(separator: "\n")
    }

    /// String literals with blanks, except SQL; other lines are empty.
    fileprivate var literalText: String {
        let sql =
            /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|COPY|CREATE|ALTER|DROP|SET|FROM|WHERE|AND|JOIN|LEFT|CROSS|ORDER|UNION|VALUES|RETURNING|LOCK|CASE|WHEN|ELSE|ON|AS|OR|IN)\b/
        // An expression inside the closure would be parsed for each line.
        let delimiter = /"""/
        let text = /"((?:[^"\\]|\\.)*)"/
        let interpolation = /\\\((?:[^()]|\([^()]*\))*\)/
        var isInText = false
        var isSQL = false
        return lines.map { line -> String in
            // Matching each line takes minutes in a debug build.
            if !isInText, !line.containsBytes(of: "\"") { return "" }
            let code = line.drop { $0 == " " }
            if code.hasPrefix("//") { return "" }
            if line.containsBytes(of: "\"\"\""), !line.matches(of: delimiter).count.isMultiple(of: 2) {
                isInText.toggle()
                isSQL = false
                return ""
            }
            if isInText {
                if !isSQL, code.prefixMatch(of: sql) != nil { isSQL = true }
                return isSQL ? "" : String(code)
            }
            return line.matches(of: text).map(\.output.1).filter { literal in
                literal.contains(" ") && literal.prefixMatch(of: sql) == nil
            }.joined(separator: " ").replacing(interpolation, with: "§")
        }.joined(separator: "\n")
    }

    private static let declarations = [
        "func ", "var ", "let ", "case ", "struct ", "class ", "enum ", "actor ", "protocol ", "typealias ",
    ]

    /// Declared names with blanks between their parts; other lines are empty.
    fileprivate var nameText: String {
        let declared = /\b(?:func|var|let|case|struct|class|enum|actor|protocol|typealias) `?([A-Za-z_]\w*)/
        let boundary = /([a-z0-9])([A-Z])/
        return lines.map { line -> String in
            guard Self.declarations.contains(where: line.containsBytes) else { return "" }
            let text = line.drop { $0 == " " }
            if text.hasPrefix("//") || text.hasPrefix("\"") { return "" }
            return line.matches(of: declared)
                .map { String($0.output.1).replacing(boundary) { "\($0.output.1) \($0.output.2)" } }
                .joined(separator: " , ")
        }.joined(separator: "\n")
    }
}
