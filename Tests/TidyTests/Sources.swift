import Foundation
import Model
import TestSupport
import Testing

/// One file of Swift, with its path inside the project.
struct SourceFile: Sendable, CustomTestStringConvertible {
    let path: String
    let text: String
    let lines: [Substring]

    init(path: String, text: String) {
        self.path = path
        self.text = text
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    var testDescription: String { path }

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
        guard text.containsBytes(of: pattern) else { return [] }
        return lines.enumerated().filter { _, line in
            line.containsBytes(of: pattern) && !line.drop { $0 == " " }.hasPrefix("//")
        }.map { $0.offset + 1 }
    }
}

extension StringProtocol {
    /// Whether these characters are in the string. In a debug build of 1,000 files, `contains` takes minutes.
    func containsBytes(of pattern: String) -> Bool {
        let pattern = Array(pattern.utf8)
        let found = utf8.withContiguousStorageIfAvailable { text in
            guard let start = text.baseAddress else { return pattern.isEmpty }
            var offset = 0
            while offset + pattern.count <= text.count,
                let match = unsafe memchr(start + offset, Int32(pattern[0]), text.count - pattern.count - offset + 1)
            {
                if unsafe memcmp(match, pattern, pattern.count) == 0 { return true }
                offset = unsafe UnsafeRawPointer(match) - UnsafeRawPointer(start) + 1
            }
            return false
        }
        return found ?? contains(String(decoding: pattern, as: UTF8.self))
    }
}

/// The text of a file of the project; `nil` when it is not there.
func projectText(_ path: String) -> String? {
    try? String(contentsOf: projectFolder.appendingPathComponent(path), encoding: .utf8)
}
