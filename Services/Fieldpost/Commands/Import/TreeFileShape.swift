import Essentials
import FoundationEssentials

/// The problems of a file: the first few, and their total number.
struct TreeFileProblems {
    private(set) var first: [String] = []
    private(set) var count = 0

    private static let shownMax = 10

    var isEmpty: Bool { count == 0 }

    mutating func add(_ problem: @autoclosure () -> String) {
        count += 1
        if first.count < Self.shownMax { first.append(Self.plain(problem())) }
    }

    /// All problems in one line.
    var text: String {
        first.joined(separator: "; ") + (count > first.count ? "; and \(count - first.count) more" : "")
    }

    /// Replaces control characters: names come from other systems and must not control the terminal.
    private static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}

/// Validates the keys of a file of trees, and its limits. Values are decoded afterwards, if no key is misspelt or
/// missing.
struct TreeFileShape: Decodable {
    private indirect enum Value {
        case scalar
        case object(Shape)
        case list(Shape)
    }

    private enum Shape {
        case file, tree, context, section, template, reference

        var required: [String] {
            switch self {
            case .file: []
            case .tree, .context: ["id", "name"]
            case .section: ["name"]
            case .template: ["id", "name", "type"]
            case .reference: ["id"]
            }
        }

        var values: [String: Value] {
            switch self {
            case .file: Self.ofFile
            case .tree: Self.ofTree
            case .context: Self.ofContext
            case .section: Self.ofSection
            case .template: Self.ofTemplate
            case .reference: Self.ofReference
            }
        }

        private static let ofFile: [String: Value] = [
            "trees": .list(.tree), "contexts": .list(.context), "templates": .list(.template),
        ]
        private static let ofTree: [String: Value] = [
            "id": .scalar, "referenceId": .scalar, "name": .scalar, "title": .scalar, "hasDependencies": .scalar,
            "dependencies": .list(.reference), "children": .list(.tree),
        ]
        private static let ofContext: [String: Value] = [
            "id": .scalar, "name": .scalar, "required": .scalar, "sections": .list(.section),
            "preselected": .list(.reference), "visible": .scalar, "readOnly": .scalar,
        ]
        private static let ofSection: [String: Value] = [
            "name": .scalar, "showCount": .scalar, "items": .list(.reference), "rootNode": .object(.reference),
        ]
        private static let ofTemplate: [String: Value] = [
            "id": .scalar, "name": .scalar, "type": .scalar, "reportingContexts": .list(.reference),
        ]
        private static let ofReference: [String: Value] = ["id": .scalar]
    }

    struct AnyKey: CodingKey {
        let stringValue: String
        let intValue: Int? = nil
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private typealias Object = KeyedDecodingContainer<AnyKey>

    static let nodeCountMax = 100_000
    /// Maximum depth of a tree; a root has depth 1.
    static let depthMax = 64
    /// Maximum number of contexts, and of templates.
    static let otherCountMax = 10_000

    private(set) var problems = TreeFileProblems()
    private var nodeCount = 0
    private var otherCounts: [String: Int] = [:]

    init(from decoder: any Decoder) throws {
        if let list = try? decoder.unkeyedContainer() {
            check(list, .tree, depth: 1)
        } else {
            let object = try decoder.container(keyedBy: AnyKey.self)
            check(object, TreeFile.isTree(object.allKeys.map(\.stringValue)) ? .tree : .file, depth: 1)
        }
        if nodeCount > Self.nodeCountMax {
            problems.add("there are \(nodeCount) nodes; the maximum is \(Self.nodeCountMax)")
        }
        for (name, count) in otherCounts.sorted(by: { $0.key < $1.key }) where count > Self.otherCountMax {
            problems.add("there are \(count) \(name); the maximum is \(Self.otherCountMax)")
        }
    }

    private mutating func check(_ list: any UnkeyedDecodingContainer, _ shape: Shape, depth: Int) {
        var list = list
        while !list.isAtEnd {
            // A value that is not an object is reported when it is decoded.
            guard let object = try? list.nestedContainer(keyedBy: AnyKey.self) else { return }
            check(object, shape, depth: depth)
        }
    }

    /// - Parameter depth: The depth of a tree's node.
    private mutating func check(_ object: Object, _ shape: Shape, depth: Int) {
        switch shape {
        case .tree: nodeCount += 1
        case .context: otherCounts["contexts", default: 0] += 1
        case .template: otherCounts["templates", default: 0] += 1
        case .file, .section, .reference: break
        }
        let values = shape.values
        let keys = object.allKeys.map(\.stringValue).sorted()
        for key in keys where values[key] == nil {
            let names = values.keys.sorted().joined(separator: ", ")
            problems.add(Self.location(of: object) + "unknown key '\(key.excerpt)'; allowed: \(names)")
        }
        for key in shape.required where !keys.contains(key) {
            problems.add(Self.location(of: object) + "'\(key)' is missing")
        }
        for key in keys {
            guard let value = values[key] else { continue }
            let name = AnyKey(stringValue: key)
            switch value {
            case .scalar: break
            case .object(let shape):
                if let inner = try? object.nestedContainer(keyedBy: AnyKey.self, forKey: name) {
                    check(inner, shape, depth: 1)
                }
            case .list(let shape):
                guard let list = try? object.nestedUnkeyedContainer(forKey: name) else { continue }
                guard key != "children" || depth < Self.depthMax || list.isAtEnd else {
                    problems.add(Self.location(of: object) + "a tree is at most \(Self.depthMax) nodes deep")
                    continue
                }
                check(list, shape, depth: key == "children" ? depth + 1 : 1)
            }
        }
    }

    private static func location(of object: Object) -> String {
        let path = object.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined()
        return path.isEmpty ? "" : path.drop { $0 == "." } + ": "
    }
}
