import Model
import TestSupport
import Testing

/// Comments and documents cite only available sources: laws by their numbers, documents of the project.
@Suite struct CitationTests {
    @Test func citedLawsExist() throws {
        let document = try #require(TextFile.documents.first { $0.path == "docs/contributors/architecture.md" })
        for number in 1...6 {
            #expect(document.lines.contains { $0.hasPrefix("### Law \(number): ") }, "Law \(number)")
        }
        for file in TextFile.documents + TextFile.code {
            for (line, text) in file.prose(with: "aw") {
                for match in text.matches(of: /\b[Ll]aws? (\d+)(?:(?:,| and| or) (\d+))*/) {
                    for digits in match.output.0.matches(of: /\d+/) {
                        let number = Int(digits.output) ?? 0
                        #expect(1...6 ~= number, "\(file.path):\(line): there is no law \(number)")
                    }
                }
            }
        }
    }

    /// Papers that a reader of the project does not have.
    private static let forbidden = [
        "architecture.md §", "seed document", "domain-facts", "house.md", "style.md", "the issue ", "the issue:",
        "the issue,", "the issue.", "design/",
    ]

    @Test(arguments: forbidden) func unavailableSourcesAreNotCited(words: String) {
        for file in TextFile.documents + TextFile.code {
            for (line, _) in file.prose(with: words) {
                Issue.record("\(file.path):\(line): \(words): state it here, or cite a document of the project")
            }
        }
    }

    @Test func citedDocumentsExist() throws {
        let names = Set(TextFile.documents.compactMap { $0.path.split(separator: "/").last.map(String.init) })
            .union(["CONFIGURATION.md", "STATISTICS.md"])  // librdkafka's own
        for file in TextFile.documents + TextFile.code {
            for (line, text) in file.prose(with: ".md") {
                for match in text.matches(of: /[A-Za-z0-9-]+\.md\b/) where !names.contains(String(match.output)) {
                    Issue.record("\(file.path):\(line): there is no \(match.output)")
                }
            }
        }
    }

    /// `README's Decisions` is a heading of the README; a comment is out of date where it is not.
    @Test func citedHeadingsExist() throws {
        let readme = try #require(TextFile.documents.first { $0.path == "README.md" })
        for file in TextFile.documents + TextFile.code {
            for (line, text) in file.prose(with: "README") {
                for match in text.matches(of: /(?:README's|of the README:?|in the README:?) "?([A-Za-z]+(?: [a-z]+)*)/)
                {
                    let heading = match.output.1.lowercased().replacing(" ", with: "-")
                    let isThere = readme.anchors.contains { heading.hasPrefix($0) }
                    #expect(isThere, "\(file.path):\(line): the README has no heading \(match.output.1)")
                }
                if file.sort != .document {
                    for match in text.matches(of: /(?i)(?:of|in|from) the README\b(?! ?:)/) {
                        Issue.record("\(file.path):\(line): \(match.output): which document is it in?")
                    }
                }
            }
        }
    }

    /// Operators look up log lines in the runbooks.
    @Test func everyErrorLogIsDocumented() throws {
        let overview = try #require(projectText("docs/operators/troubleshooting.md"))
        let operations = overview + TextFile.runbooks.map(\.text).joined()
        var count = 0
        for file in SourceFile.all where !file.path.hasPrefix("Tests/") {
            if ["Tools/", "Services/Fieldpost/"].contains(where: file.path.hasPrefix) {
                continue
            }
            guard ["logger.error(", "logger.critical("].contains(where: { TextFile.contains(file.text, $0) }) else {
                continue
            }
            for match in file.text.matches(of: /\.(?:error|critical)\(\s*"([^"\\]+)"/) {
                count += 1
                if !TextFile.contains(operations, "`\(match.output.1)`") {
                    Issue.record("\(file.path): no runbook documents the log line: \(match.output.1)")
                }
            }
        }
        #expect(count >= 10)
    }
}
