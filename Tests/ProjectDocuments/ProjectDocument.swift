import Foundation
package import Yams

/// A YAML document of the project, read both as text and as a parsed tree.
package struct ProjectDocument {
    package let text: String
    package let root: Node

    /// - Parameter path: From the project's folder, such as `deploy/openapi.yaml`.
    /// - Throws: What keeps the file from being read, or a `YamlError` with its line and column.
    package init(_ path: String) throws {
        let project = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        text = try String(contentsOf: project.appendingPathComponent(path), encoding: .utf8)
        root = try Yams.compose(yaml: text) ?? [:]
    }
}

extension Node {
    /// A mapping's members in their order; none of what is no mapping.
    package var members: [(name: String, value: Node)] {
        mapping?.compactMap { key, value in key.string.map { ($0, value) } } ?? []
    }

    /// The names of a mapping's members.
    package var names: Set<String> { Set(members.map(\.name)) }

    /// A sequence's texts, or the one text that stands for itself.
    package var texts: Set<String> { Set((sequence.map { Array($0) } ?? [self]).compactMap(\.string)) }
}
