import Foundation
import Model
import TestSupport
import Testing

/// Links of documents and paths cited in code exist.
@Suite struct LinkTests {
    @Test(arguments: TextFile.documents) func linkTargetsExist(document: TextFile) throws {
        let link = /\]\((?<target>[^)\s]+)\)/
        for (number, line) in document.unfenced {
            for match in line.replacing(/`[^`]*`/, with: "").matches(of: link) {
                let target = String(match.output.target)
                if target.contains("://") { continue }
                let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let path = parts[0].isEmpty ? document.path : Self.joined(document.folder, String(parts[0]))
                let url = projectFolder.appendingPathComponent(path)
                guard FileManager.default.fileExists(atPath: url.path) else {
                    Issue.record("\(document.path):\(number): there is no \(path)")
                    continue
                }
                guard parts.count > 1 else { continue }
                let anchors = TextFile.documents.first { $0.path == path }?.anchors ?? []
                if !anchors.contains(String(parts[1])) {
                    Issue.record("\(document.path):\(number): there is no heading for \(target)")
                }
            }
        }
    }

    /// `a/b` and `../c/d` make `a/c/d`.
    private static func joined(_ folder: String, _ path: String) -> String {
        var parts = folder.split(separator: "/")
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return parts.joined(separator: "/")
    }

    /// Every document is one click from another one; `deploy/docs --modules` checks the pages of DocC catalogues.
    @Test func everyDocumentIsLinked() {
        let all = TextFile.documents.map { document in
            document.unfenced.map(\.text).joined(separator: "\n")
        }.joined(separator: "\n")
        for document in TextFile.documents
        where document.path != "README.md" && !document.path.contains(".docc/") {
            let name = document.path.split(separator: "/").suffix(document.path.hasSuffix("/README.md") ? 2 : 1)
            if !TextFile.contains(all, name.joined(separator: "/")) {
                Issue.record("nothing leads to \(document.path)")
            }
        }
    }

    // MARK: Paths

    private static let folders = ["Shared", "Services", "Tests", "Tools", "deploy", "docs", "examples"]

    /// Paths, in backticks or bare, of files or folders of the project; `*`, `…`, `{a,b}` and `NNNN` stand for any.
    private static func paths(in text: Substring, below folder: String) -> [String] {
        text.ranges(of: folder + "/").compactMap { range in
            if range.lowerBound > text.startIndex {
                guard " `(\"|".contains(text[text.index(before: range.lowerBound)]) else { return nil }
            }
            var path = text[range.lowerBound...].prefix {
                $0.isLetter || $0.isNumber || "._/+*…{},-".contains($0)
            }
            while let last = path.last, ".,/-".contains(last) { path.removeLast() }
            return String(path)
        }
    }

    @Test func citedPathsExist() {
        let everything = Self.everything()
        for folder in Self.folders {
            for file in TextFile.documents + TextFile.code {
                for (number, text) in file.prose(with: folder + "/") {
                    for path in Self.paths(in: text, below: folder) {
                        if Self.isThere(path, in: everything) { continue }
                        Issue.record("\(file.path):\(number): there is no \(path)")
                    }
                }
            }
        }
    }

    private static func isThere(_ path: String, in everything: Set<String>) -> Bool {
        if everything.contains(path) { return true }
        guard path.contains(where: { "*…{N".contains($0) }) else { return false }
        let parts = path.split(separator: "/").map { part in
            NSRegularExpression.escapedPattern(for: String(part))
                .replacing(/\\\*|…|\\\{[^}]*\}|N{3,4}/, with: "[^/]*")
        }
        let pattern = "^" + parts.joined(separator: "/") + "$"
        return everything.contains { $0.range(of: pattern, options: .regularExpression) != nil }
    }

    /// Files of the project, and folders that have some: an empty one is not in a clone.
    private static func everything() -> Set<String> {
        var found: Set<String> = []
        let root = projectFolder.path + "/"
        for folder in folders {
            found.insert(folder)
            let paths = FileManager.default.enumerator(atPath: root + folder)
            while let path = paths?.nextObject() as? String {
                guard paths?.fileAttributes?[.type] as? FileAttributeType != .typeDirectory else { continue }
                var parts = (folder + "/" + path).split(separator: "/")
                while !parts.isEmpty, found.insert(parts.joined(separator: "/")).inserted { parts.removeLast() }
            }
        }
        return found
    }
}
