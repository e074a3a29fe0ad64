import Foundation
import TestSupport
import Testing

/// The programs in `examples/` are built and run by the tests; documents quote lines of them.
@Suite struct ExampleTests {
    /// A block of a document whose first line is a comment with the path of an example.
    private struct Quotation {
        let document: String
        let path: String
        /// The lines between lines that are only `…` in a comment.
        let pieces: [String]
    }

    @Test func quotedExampleLinesExist() throws {
        let quotations = try Documents.paths().flatMap { try Self.quotations(of: $0) }
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

    private static func quotations(of document: String) throws -> [Quotation] {
        let text = try #require(projectText(document))
        var quotations: [Quotation] = []
        for (index, block) in text.components(separatedBy: "\n```").enumerated() where index % 2 == 1 {
            var lines = block.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
            guard let path = lines.first?.wholeMatch(of: /(?:\/\/|#) (examples\/\S+)/)?.1 else { continue }
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
