import Foundation
import Model
import TestSupport
import Testing

/// One file of Swift, with its path inside the project.
struct SourceFile: Sendable, CustomTestStringConvertible {
    let path: String
    let text: String

    var testDescription: String { path }
    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

    /// Whether it holds a rule: a pure function that decides.
    var isRule: Bool {
        // A part of one, such as SubmissionRule+Settling.swift, is one too.
        let name = (path.split(separator: "/").last ?? "").prefix { $0 != "+" && $0 != "." }
        return !path.hasPrefix("Tests/")
            && (name.hasSuffix("Rule") || name.hasSuffix("Rules") || name == "Permissions")
    }

    /// All source files except these tests, which name the terms that they forbid.
    static let all: [SourceFile] = {
        let root = projectFolder.path + "/"
        var files: [SourceFile] = []
        for folder in ["Services", "Shared", "Tests", "Tools"] {
            let paths = FileManager.default.enumerator(atPath: root + folder)
            while let path = paths?.nextObject() as? String {
                let path = folder + "/" + path
                guard path.hasSuffix(".swift"), !path.hasPrefix("Tests/TidyTests/") else { continue }
                guard let text = try? String(contentsOfFile: root + path, encoding: .utf8) else { continue }
                files.append(SourceFile(path: path, text: text))
            }
        }
        return files.sorted { $0.path < $1.path }
    }()

    /// Lines of code that contain `pattern`, with their numbers; comments do not count.
    func lines(with pattern: String) -> [Int] {
        lines.enumerated().filter { _, line in
            line.contains(pattern) && !line.drop { $0 == " " }.hasPrefix("//")
        }.map { $0.offset + 1 }
    }
}

/// The text of a file of the project; `nil` when it is not there.
func projectText(_ path: String) -> String? {
    try? String(contentsOf: projectFolder.appendingPathComponent(path), encoding: .utf8)
}
