import Foundation
import TestSupport
import Testing

/// Documents and DocC catalogues quote lines of code that the tests build and run, most of it in `examples/`.
@Suite struct ExampleTests {
    /// A block of a document whose first line is a comment with the path of a file in `examples/` or `Tests/`.
    private struct Quotation {
        let document: String
        let path: String
        /// The lines between lines that are only `…` in a comment.
        let pieces: [String]
    }

    @Test func quotedExampleLinesExist() throws {
        let quotations = try (Documents.paths() + Self.catalogues.map(\.path)).flatMap { try Self.quotations(of: $0) }
        #expect(quotations.contains { $0.path.hasSuffix(".swift") } && quotations.contains { $0.path.hasSuffix(".py") })
        for quotation in quotations {
            let text = try #require(projectText(quotation.path), "\(quotation.document) shows \(quotation.path)")
            var rest = text[...]
            for piece in quotation.pieces {
                let found = [0, 4, 8].lazy.compactMap { rest.range(of: Self.indented(piece, by: $0)) }.first
                let first = piece.split(separator: "\n").first ?? ""
                guard let found else {
                    Issue.record(
                        "\(quotation.document): what begins with '\(first)' is not in \(quotation.path), or not there")
                    break
                }
                rest = rest[found.upperBound...]
            }
        }
    }

    /// The pages of DocC catalogues.
    private static let catalogues = TextFile.documents.filter { $0.path.contains(".docc/") }

    /// A sample of a catalogue is a quotation, so that it cannot differ from code that compiles.
    @Test func catalogueSamplesAreQuotations() throws {
        #expect(!Self.catalogues.isEmpty)
        for page in Self.catalogues {
            let blockCount = page.text.components(separatedBy: "\n```").count / 2
            #expect(try Self.quotations(of: page.path).count == blockCount, "\(page.path)")
        }
    }

    private static func quotations(of document: String) throws -> [Quotation] {
        let text = try #require(projectText(document))
        var quotations: [Quotation] = []
        for (index, block) in text.components(separatedBy: "\n```").enumerated() where index % 2 == 1 {
            var lines = block.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
            guard let path = lines.first?.wholeMatch(of: /(?:\/\/|#) ((?:examples|Tests)\/\S+)/)?.1 else { continue }
            lines = lines.dropFirst()
            let pieces = lines.split { $0.wholeMatch(of: /\s*(\/\/|#) …/) != nil }.map { $0.joined(separator: "\n") }
            quotations.append(Quotation(document: document, path: String(path), pieces: pieces))
        }
        return quotations
    }

    /// Documents show the lines of a method without its indentation.
    private static func indented(_ piece: String, by count: Int) -> String {
        piece.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.isEmpty ? "" : String(repeating: " ", count: count) + $0 }.joined(separator: "\n") + "\n"
    }
}
