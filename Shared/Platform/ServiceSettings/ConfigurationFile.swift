import FoundationEssentials

/// A configuration file: one JSON object with nested or dotted keys.
enum ConfigurationFile {
    static let bytesMax = 1 << 20

    /// Reads `path` into texts by dotted key.
    static func read(_ path: String) throws(ConfigurationError) -> [String: String] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw ConfigurationError("cannot read the configuration file \(path)")
        }
        guard data.count <= bytesMax else {
            throw ConfigurationError("the configuration file \(path) is larger than \(bytesMax) bytes")
        }
        let root: Node
        do {
            root = try JSONDecoder().decode(Node.self, from: data)
        } catch {
            throw ConfigurationError("the configuration file \(path) is not valid JSON")
        }
        guard case .object = root else {
            throw ConfigurationError("the configuration file \(path) must contain one JSON object")
        }
        var values: [String: String] = [:]
        try root.flatten(under: "", of: path, into: &values)
        return values
    }

    private enum Node: Decodable {
        case text(String)
        case array([Node])
        case object([String: Node])
        case null

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let flag = try? container.decode(Bool.self) {
                self = .text(flag ? "true" : "false")
            } else if let integer = try? container.decode(Int.self) {
                self = .text(String(integer))
            } else if let number = try? container.decode(Double.self) {
                self = .text(String(number))
            } else if let text = try? container.decode(String.self) {
                self = .text(text)
            } else if let array = try? container.decode([Node].self) {
                self = .array(array)
            } else {
                self = .object(try container.decode([String: Node].self))
            }
        }

        func flatten(
            under key: String, of path: String, into values: inout [String: String]
        ) throws(ConfigurationError) {
            switch self {
            case .null:
                throw ConfigurationError("\(key) in \(path) is null; omit the key instead")
            case .text(let text):
                guard values.updateValue(text, forKey: key) == nil else {
                    throw ConfigurationError("\(key) occurs twice in \(path)")
                }
            case .array(let items):
                var texts: [String] = []
                for item in items {
                    guard case .text(let text) = item else {
                        throw ConfigurationError("\(key) in \(path) must be a list of texts")
                    }
                    texts.append(text)
                }
                values[key] = texts.joined(separator: ",")
            case .object(let members):
                for (name, member) in members {
                    try member.flatten(under: key.isEmpty ? name : "\(key).\(name)", of: path, into: &values)
                }
            }
        }
    }
}
