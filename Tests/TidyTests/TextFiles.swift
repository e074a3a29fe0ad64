import Foundation
import TestSupport
import Testing

/// A file that people read: a document, or code with comments.
struct TextFile: Sendable, CustomTestStringConvertible {
    enum Sort: Sendable { case document, swift, sql, shell, yaml, other }

    let path: String
    let text: String

    var testDescription: String { path }
    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }
    var folder: String { path.split(separator: "/").dropLast().joined(separator: "/") }

    var sort: Sort {
        switch path.split(separator: ".").last {
        case "md": .document
        case "swift": .swift
        case "sql": .sql
        case "yaml", "yml": .yaml
        case "sh", "py": .shell
        default: text.hasPrefix("#!") ? .shell : .other
        }
    }

    /// All text files of the project, without build products and output of runs.
    static let all: [TextFile] = {
        var files: [TextFile] = []
        var folders = [""]
        while let folder = folders.popLast() {
            let names = try? FileManager.default.contentsOfDirectory(atPath: projectFolder.path + "/" + folder)
            for name in names ?? [] where !name.hasPrefix(".") || name == ".ci" {
                let path = folder + name
                var isFolder: ObjCBool = false
                let full = projectFolder.path + "/" + path
                guard unsafe FileManager.default.fileExists(atPath: full, isDirectory: &isFolder) else { continue }
                if isFolder.boolValue {
                    folders.append(path + "/")
                } else if let text = try? String(contentsOfFile: full, encoding: .utf8) {
                    let file = TextFile(path: path, text: text)
                    if file.sort != .other { files.append(file) }
                }
            }
        }
        return files.sorted { $0.path < $1.path }
    }()

    static let documents = all.filter { $0.sort == .document }

    /// Code except these tests, which name the terms that they forbid.
    static let code = all.filter { $0.sort != .document && !$0.path.hasPrefix("Tests/TidyTests/") }

    /// Returns prose with line numbers: a document's text outside of
    /// its examples, and the comments of code.
    ///
    /// - Parameter term: A text that the returned lines contain.
    func prose(with term: String) -> [(number: Int, text: Substring)] {
        guard Self.contains(text, term) else { return [] }
        if sort == .document { return unfenced.map { ($0, $1[...]) }.filter { Self.contains(String($1), term) } }
        return lines.enumerated().compactMap { index, line -> (number: Int, text: Substring)? in
            guard Self.contains(String(line), term) else { return nil }
            let text: Substring? =
                switch sort {
                case .yaml: line
                // The slashes of an address are no comment.
                case .swift: Self.contains(String(line.replacing("://", with: ":")), "//") ? line : nil
                case .sql: line.firstRange(of: "--").map { line[$0.upperBound...] }
                case .shell: line.firstRange(of: "#").map { line[$0.upperBound...] }
                case .document, .other: nil
                }
            return text.map { (index + 1, $0) }
        }
    }

    /// Searches with `strstr`: Swift's own search takes minutes for the whole project in a debug build.
    static func contains(_ text: String, _ word: String) -> Bool { unsafe strstr(text, word) != nil }

    /// Lines that are in no fenced block: where links and headings are.
    var unfenced: [(number: Int, text: String)] {
        var isFenced = false
        var result: [(Int, String)] = []
        for (index, line) in lines.enumerated() {
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isFenced.toggle()
            } else if !isFenced {
                result.append((index + 1, String(line)))
            }
        }
        return result
    }

    /// The anchors of the headings, as GitHub makes them.
    var anchors: Set<String> {
        var found: Set<String> = []
        for (_, line) in unfenced where line.hasPrefix("#") {
            let title = line.drop { $0 == "#" }.drop { $0 == " " }.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }
            let words = title.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
            let anchor = words.replacing(" ", with: "-")
            var name = anchor
            var count = 0
            while found.contains(name) {
                count += 1
                name = "\(anchor)-\(count)"
            }
            found.insert(name)
        }
        return found
    }
}
