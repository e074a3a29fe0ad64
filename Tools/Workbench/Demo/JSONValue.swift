import FoundationEssentials
import Model

/// A decoded JSON value, for comparing two texts that may be written differently.
enum JSONValue: Equatable, Decodable, Sendable {
    case null
    case bool(Bool)
    case number(Decimal)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Decimal.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// Whether two texts are the same value. Equal bytes, the usual case, are not decoded.
    static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        if left == right { return true }
        guard let left = try? read(left), let right = try? read(right) else { return false }
        return left == right
    }

    /// The names of the fields in which two objects differ.
    static func differingFields(_ left: [UInt8], _ right: [UInt8]) -> [String] {
        guard case .object(let left) = try? read(left), case .object(let right) = try? read(right) else { return [] }
        return Set(left.keys).union(right.keys).filter { left[$0] != right[$0] }.sorted()
    }

    private static func read(_ bytes: [UInt8]) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }
}
