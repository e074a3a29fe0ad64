import Essentials
import FoundationEssentials

/// What is wrong with a file: the first few problems, and how many there are.
struct TreeFileProblems {
    private(set) var first: [String] = []
    private(set) var count = 0

    private static let shownMax = 10

    var isEmpty: Bool { count == 0 }

    mutating func add(_ problem: @autoclosure () -> String) {
        count += 1
        if first.count < Self.shownMax { first.append(Self.plain(problem())) }
    }

    /// All in one line.
    var text: String {
        first.joined(separator: "; ") + (count > first.count ? "; and \(count - first.count) more" : "")
    }

    /// Names come from other systems: no control character of theirs reaches a terminal.
    private static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : $0 }))
    }
}

/// Which keys a file of trees can have, where, and how much of everything. Values are not looked at here: they are
/// read afterwards, when nothing is misspelt, missing or too much.
struct TreeFileShape: Decodable {
    private indirect enum Part {
        case value
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

        var parts: [String: Part] {
            switch self {
            case .file: Self.ofFile
            case .tree: Self.ofTree
            case .context: Self.ofContext
            case .section: Self.ofSection
            case .template: Self.ofTemplate
            case .reference: Self.ofReference
            }
        }

        private static let ofFile: [String: Part] = [
            "trees": .list(.tree), "contexts": .list(.context), "templates": .list(.template),
        ]
        private static let ofTree: [String: Part] = [
            "id": .value, "referenceId": .value, "name": .value, "title": .value, "hasDependencies": .value,
            "dependencies": .list(.reference), "children": .list(.tree),
        ]
        private static let ofContext: [String: Part] = [
            "id": .value, "name": .value, "required": .value, "sections": .list(.section),
            "preselected": .list(.reference), "visible": .value, "readOnly": .value,
        ]
        private static let ofSection: [String: Part] = [
            "name": .value, "showCount": .value, "items": .list(.reference), "rootNode": .object(.reference),
        ]
        private static let ofTemplate: [String: Part] = [
            "id": .value, "name": .value, "type": .value, "reportingContexts": .list(.reference),
        ]
        private static let ofReference: [String: Part] = ["id": .value]
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        let intValue: Int? = nil
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private typealias Object = KeyedDecodingContainer<AnyKey>

    static let nodeCountMax = 100_000
    /// A root is 1 deep.
    static let depthMax = 64
    /// Of contexts, and of templates.
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
            problems.add("there are \(nodeCount) nodes, and can be at most \(Self.nodeCountMax)")
        }
        for (name, count) in otherCounts.sorted(by: { $0.key < $1.key }) where count > Self.otherCountMax {
            problems.add("there are \(count) \(name), and can be at most \(Self.otherCountMax)")
        }
    }

    private mutating func check(_ list: any UnkeyedDecodingContainer, _ shape: Shape, depth: Int) {
        var list = list
        while !list.isAtEnd {
            // What is no object is told with its place when it is read.
            guard let object = try? list.nestedContainer(keyedBy: AnyKey.self) else { return }
            check(object, shape, depth: depth)
        }
    }

    /// - Parameter depth: Of a tree's node.
    private mutating func check(_ object: Object, _ shape: Shape, depth: Int) {
        switch shape {
        case .tree: nodeCount += 1
        case .context: otherCounts["contexts", default: 0] += 1
        case .template: otherCounts["templates", default: 0] += 1
        case .file, .section, .reference: break
        }
        let parts = shape.parts
        let keys = object.allKeys.map(\.stringValue).sorted()
        for key in keys where parts[key] == nil {
            let known = parts.keys.sorted().joined(separator: ", ")
            problems.add(Self.place(object) + "there is no '\(key.excerpt)' here; there are \(known)")
        }
        for key in shape.required where !keys.contains(key) { problems.add(Self.place(object) + "'\(key)' is missing") }
        for key in keys {
            guard let part = parts[key] else { continue }
            let name = AnyKey(stringValue: key)
            switch part {
            case .value: break
            case .object(let shape):
                if let inner = try? object.nestedContainer(keyedBy: AnyKey.self, forKey: name) {
                    check(inner, shape, depth: 1)
                }
            case .list(let shape):
                guard let list = try? object.nestedUnkeyedContainer(forKey: name) else { continue }
                guard key != "children" || depth < Self.depthMax || list.isAtEnd else {
                    problems.add(Self.place(object) + "a tree is at most \(Self.depthMax) nodes deep")
                    continue
                }
                check(list, shape, depth: key == "children" ? depth + 1 : 1)
            }
        }
    }

    private static func place(_ object: Object) -> String {
        let path = object.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined()
        return path.isEmpty ? "" : path.drop { $0 == "." } + ": "
    }
}
