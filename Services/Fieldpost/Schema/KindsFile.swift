import CommandLineSupport
import Essentials
import Foundation
import KindSchema
import Model
import Yams

/// A file in YAML or JSON, with the lines of its values.
struct KindsFile {
    /// Maximum number of values: aliases could repeat them without limit.
    private static let valueCountMax = 100_000
    private static let depthMax = 100

    let path: String
    let value: SchemaValue
    /// The file as YAML, for its lines; `nil` if a JSON file is no YAML.
    private let root: Node?

    /// Reads a file.
    ///
    /// - Throws: `CommandFailure` with the file and the line.
    init(_ path: String) throws {
        let data = try TextFile.read(path, bytesMax: EnvironmentKinds.fileBytesMax)
        self.path = path
        let text = String(decoding: data, as: UTF8.self)
        if let value = try? SchemaValue(Array(data)) {
            self.value = value
            root = try? Yams.compose(yaml: text, Self.resolver)
            return
        }
        do {
            guard let root = try Yams.compose(yaml: text, Self.resolver) else {
                throw CommandFailure("\(path) is empty")
            }
            self.root = root
            var count = 0
            value = try Self.value(of: root, path, depth: 0, count: &count)
        } catch let error as YamlError {
            throw CommandFailure("\(path) is neither YAML nor JSON: \(error)")
        }
    }

    /// The core schema of YAML 1.2: `no` and `08:30` are strings.
    private static let resolver: Resolver = {
        let rules: [(Tag.Name, String)] = [
            (.null, "^(?:null|Null|NULL|~|)$"), (.bool, "^(?:true|True|TRUE|false|False|FALSE)$"),
            (.int, "^[-+]?[0-9]+$"), (.float, "^[-+]?(?:\\.[0-9]+|[0-9]+(?:\\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
        ]
        return rules.reduce(.basic) { resolver, rule in (try? resolver.appending(rule.0, rule.1)) ?? resolver }
    }()

    /// Reads the kinds of a schema file.
    ///
    /// - Throws: `CommandFailure`, after a line on standard error for each problem.
    static func kinds(_ path: String) throws -> EnvironmentKinds { try read(path).kinds }

    /// Reads a schema file, with its content.
    ///
    /// - Throws: `CommandFailure`, after a line on standard error for each problem.
    static func read(_ path: String) throws -> (value: SchemaValue, kinds: EnvironmentKinds) {
        let file = try KindsFile(path)
        do throws(EnvironmentKinds.Problems) {
            return (file.value, try EnvironmentKinds(file.value))
        } catch {
            for problem in error.list { printError(file.text(problem) + "\n") }
            throw CommandFailure("\(path) has \(error.list.count == 1 ? "a problem" : "\(error.list.count) problems")")
        }
    }

    /// Returns a problem with its line.
    func text(_ problem: SchemaProblem) -> String {
        guard var node = root else { return "\(path): \(problem)" }
        for part in problem.path.split(separator: "/") {
            let name = String(part).replacing("~1", with: "/").replacing("~0", with: "~")
            let index = node.mapping == nil ? Int(name) : nil
            guard let next = index.flatMap({ node.sequence?[safe: $0] }) ?? node.mapping?[Node(name)] else { break }
            node = next
        }
        let line = node.mark.map { ":\($0.line)" } ?? ""
        return "\(path)\(line): \(problem)"
    }

    private static func value(_ scalar: Node.Scalar, _ node: Node) throws -> SchemaValue {
        switch node.tag {
        case Tag(.null): .null
        case Tag(.bool): .bool(scalar.string.lowercased() == "true")
        case Tag(.int), Tag(.float): try number(scalar.string)
        default: .text(scalar.string)
        }
    }

    /// Returns a number of YAML, whose forms are more than those of JSON: `+1`, `01`, `.5`, `1.`.
    private static func number(_ text: String) throws -> SchemaValue {
        guard let number = Double(text), number.isFinite else {
            throw CommandFailure("the number \(text.excerpt) is not supported")
        }
        if let whole = Int64(text) { return .integer(whole) }
        return (try? SchemaValue(Array(text.utf8))) ?? .number(number)
    }

    private static func value(of node: Node, _ path: String, depth: Int, count: inout Int) throws -> SchemaValue {
        count += 1
        let line = node.mark.map { ":\($0.line)" } ?? ""
        guard count <= valueCountMax else { throw CommandFailure("\(path) has more than \(valueCountMax) values") }
        guard depth <= depthMax else { throw CommandFailure("\(path)\(line): more than \(depthMax) levels") }
        switch node {
        case .scalar(let scalar): return try value(scalar, node)
        case .sequence(let nodes):
            return .list(try nodes.map { try value(of: $0, path, depth: depth + 1, count: &count) })
        case .mapping(let pairs):
            return .object(
                try pairs.map { key, node in
                    guard let name = key.string else { throw CommandFailure("\(path)\(line): a key is no text") }
                    return .init(name, try value(of: node, path, depth: depth + 1, count: &count))
                })
        case .alias: throw CommandFailure("\(path)\(line): an alias of a missing anchor")
        }
    }
}

extension KindsFile {
    /// Returns a value as YAML.
    static func yaml(_ value: SchemaValue) throws -> String {
        try Yams.serialize(node: node(value), width: 110, allowUnicode: true)
    }

    /// Whether a text is a string in YAML also without quotes.
    private static func isPlain(_ text: String) -> Bool {
        let others = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
        return text.wholeMatch(of: /[A-Za-z][A-Za-z0-9_-]*/) != nil && !others.contains(text.lowercased())
    }

    private static func node(_ value: SchemaValue) -> Node {
        switch value {
        case .null: Node("null", Tag(.null))
        case .bool(let flag): Node(flag ? "true" : "false", Tag(.bool))
        case .integer(let number): Node("\(number)", Tag(.int))
        case .large(let number), .number(let number): Node("\(number)", Tag(.float))
        case .text(let text): Node(text, Tag(.str), isPlain(text) ? .plain : .doubleQuoted)
        case .list(let values): Node(values.map(node), Tag(.seq), .flow)
        case .object(let members):
            Node(members.map { (Node($0.name), node($0.value)) }, Tag(.map), members.count <= 3 ? .any : .block)
        }
    }
}

extension Node.Sequence {
    fileprivate subscript(safe index: Int) -> Node? { indices.contains(index) ? self[index] : nil }
}
