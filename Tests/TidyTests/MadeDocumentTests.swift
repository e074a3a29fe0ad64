import Foundation
import TestSupport
import Testing

/// The generated parts of documents match the code. Each part is between two comments:
///
///     <!-- made by deploy/docs: topics -->
///     <!-- end -->
///
/// `deploy/docs` runs this suite with `WRITE_DOCS=yes`, which writes them; otherwise the suite compares.
@Suite(.ownThreads) struct MadeDocumentTests {
    /// The generated parts, by the name in the comment.
    private static let parts: [String: @Sendable () throws -> String] = [
        "commands": { try CommandReference.overview() },
        "command reference": { try CommandReference.reference() },
        "json output": { try OutputReference.reference() },
        "settings": { try SettingReference.tables() },
        "services": { ServiceReference.table() },
        "topics": { TopicReference.topics() },
        "headers": { TopicReference.headers() },
        "modules": { try ModulePicture.diagram() },
    ]

    @Test func generatedPartsMatchTheCode() throws {
        let isWriting = ProcessInfo.processInfo.environment["WRITE_DOCS"] == "yes"
        var used: Set<String> = []
        for path in try Documents.paths() {
            let text = try #require(projectText(path))
            let made = try Self.making(text, in: path, &used)
            if isWriting {
                if made != text {
                    try Data(made.utf8).write(to: projectFolder.appendingPathComponent(path))
                }
            } else {
                let isAsMade = made == text
                #expect(isAsMade, "\(path) differs from the code: run deploy/docs")
            }
        }
        #expect(used == Set(Self.parts.keys), "each part that can be made is in a document")
    }

    /// Returns `text` with its parts regenerated.
    private static func making(_ text: String, in path: String, _ used: inout Set<String>) throws -> String {
        let (begin, end) = ("<!-- made by deploy/docs: ", "<!-- end -->")
        let pieces = text.components(separatedBy: begin)
        var made = pieces[0]
        for piece in pieces.dropFirst() {
            let name = String(piece.prefix { $0 != "\n" }.dropLast(" -->".count))
            let part = try #require(Self.parts[name], "\(path): no generator for '\(name)'")
            let rest = try #require(piece.range(of: end), "\(path): '\(name)' has no end")
            used.insert(name)
            made += "\(begin)\(name) -->\n\n\(try part())\n\n\(piece[rest.lowerBound...])"
        }
        return made
    }
}

/// The project's texts for people.
enum Documents {
    /// Their paths.
    static func paths() throws -> [String] {
        let paths = FileManager.default.enumerator(atPath: projectFolder.appendingPathComponent("docs").path)
        let documents = (paths?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(".md") }
        #expect(documents.count > 5)
        return documents.sorted().map { "docs/" + $0 } + ["README.md", "CONTRIBUTING.md"]
    }

    /// A table in Markdown; a cell has no line breaks.
    static func table(_ head: [String], _ rows: [[String]]) -> String {
        func line(_ cells: [String]) -> String { "| " + cells.map(cell).joined(separator: " | ") + " |" }
        let ruler = "|" + String(repeating: "---|", count: head.count)
        return ([line(head), ruler] + rows.map(line)).joined(separator: "\n")
    }

    private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
