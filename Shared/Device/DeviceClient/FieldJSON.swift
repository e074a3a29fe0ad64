public import Essentials
public import FoundationEssentials

/// A JSON value in the fields of an object.
public enum FieldJSON: Codable, Equatable, Sendable {
    /// JSON's null.
    case null
    /// A boolean.
    case bool(Bool)
    /// A whole number of 64 bits.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    /// A string.
    case text(String)
    /// An array.
    case list([FieldJSON])
    /// An object.
    case object([String: FieldJSON])

    /// Decodes a value of any form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let flag = try? container.decode(Bool.self) {
            self = .bool(flag)
        } else if let number = try? container.decode(Int64.self) {
            self = .integer(number)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let values = try? container.decode([FieldJSON].self) {
            self = .list(values)
        } else {
            self = .object(try container.decode([String: FieldJSON].self))
        }
    }

    /// Encodes the value as itself.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let flag): try container.encode(flag)
        case .integer(let number): try container.encode(number)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let values): try container.encode(values)
        case .object(let members): try container.encode(members)
        }
    }

    /// Returns the values in it; none if it has another form.
    func values(at step: FieldStep) -> [FieldJSON] {
        switch (step, self) {
        case (.member(let name), .object(let members)): members[name].map { [$0] } ?? []
        case (.others(let names), .object(let members)): members.filter { !names.contains($0.key) }.map(\.value)
        case (.each, .list(let values)): values
        default: []
        }
    }

    /// Appends the value as JSON.
    func append(to json: inout [UInt8]) {
        switch self {
        case .null: json += "null".utf8
        case .bool(let flag): json += "\(flag)".utf8
        case .integer(let number): json += "\(number)".utf8
        // JSON has no infinite numbers.
        case .number(let number): json += (number.isFinite ? "\(number)" : "null").utf8
        case .text(let text): JSONText.append(text, to: &json)
        case .list(let values):
            json.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                value.append(to: &json)
            }
            json.append(UInt8(ascii: "]"))
        case .object(let members):
            json.append(UInt8(ascii: "{"))
            for (index, (name, value)) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                JSONText.append(name, to: &json)
                json.append(UInt8(ascii: ":"))
                value.append(to: &json)
            }
            json.append(UInt8(ascii: "}"))
        }
    }
}

/// A type of Swift for the values of a field.
public protocol FieldConvertible: Sendable {
    /// Reads a value; `nil` if it has another form.
    init?(fieldJSON: FieldJSON)
    /// The value as JSON.
    var fieldJSON: FieldJSON { get }
}

extension FieldJSON: FieldConvertible {
    /// Reads any value.
    public init?(fieldJSON: FieldJSON) { self = fieldJSON }
    /// The value itself.
    public var fieldJSON: FieldJSON { self }
}

extension Bool: FieldConvertible {
    /// Reads a boolean.
    public init?(fieldJSON: FieldJSON) {
        guard case .bool(let flag) = fieldJSON else { return nil }
        self = flag
    }
    /// The boolean as JSON.
    public var fieldJSON: FieldJSON { .bool(self) }
}

extension Int64: FieldConvertible {
    /// Reads a whole number of 64 bits.
    public init?(fieldJSON: FieldJSON) {
        guard case .integer(let number) = fieldJSON else { return nil }
        self = number
    }
    /// The number as JSON.
    public var fieldJSON: FieldJSON { .integer(self) }
}

extension Double: FieldConvertible {
    /// Reads a number.
    public init?(fieldJSON: FieldJSON) {
        switch fieldJSON {
        case .integer(let number): self = Double(number)
        case .number(let number): self = number
        case .null, .bool, .text, .list, .object: return nil
        }
    }
    /// The number as JSON.
    public var fieldJSON: FieldJSON { .number(self) }
}

extension String: FieldConvertible {
    /// Reads a string.
    public init?(fieldJSON: FieldJSON) {
        guard case .text(let text) = fieldJSON else { return nil }
        self = text
    }
    /// The string as JSON.
    public var fieldJSON: FieldJSON { .text(self) }
}

extension UUID: FieldConvertible {
    /// Reads an id.
    public init?(fieldJSON: FieldJSON) {
        guard case .text(let text) = fieldJSON, let id = UUID(ascii: text) else { return nil }
        self = id
    }
    /// The id in lower case.
    public var fieldJSON: FieldJSON { .text(text) }
}

extension Day: FieldConvertible {
    /// Reads a date.
    public init?(fieldJSON: FieldJSON) {
        guard case .text(let text) = fieldJSON else { return nil }
        self.init(text)
    }
    /// The date as JSON.
    public var fieldJSON: FieldJSON { .text(description) }
}

extension Timestamp: FieldConvertible {
    /// Reads a time.
    public init?(fieldJSON: FieldJSON) {
        guard case .text(let text) = fieldJSON else { return nil }
        self.init(text)
    }
    /// The time as JSON.
    public var fieldJSON: FieldJSON { .text(description) }
}

extension Optional: FieldConvertible where Wrapped: FieldConvertible {
    /// Reads a value or null.
    public init?(fieldJSON: FieldJSON) {
        if fieldJSON == .null {
            self = .none
        } else {
            guard let value = Wrapped(fieldJSON: fieldJSON) else { return nil }
            self = .some(value)
        }
    }
    /// The value or null.
    public var fieldJSON: FieldJSON { self?.fieldJSON ?? .null }
}

extension Array: FieldConvertible where Element: FieldConvertible {
    /// Reads a list; `nil` if an element has another form.
    public init?(fieldJSON: FieldJSON) {
        guard case .list(let values) = fieldJSON else { return nil }
        let elements = values.compactMap { Element(fieldJSON: $0) }
        guard elements.count == values.count else { return nil }
        self = elements
    }
    /// The list as JSON.
    public var fieldJSON: FieldJSON { .list(map(\.fieldJSON)) }
}

extension Dictionary: FieldConvertible where Key == String, Value: FieldConvertible {
    /// Reads an object whose member names are data; `nil` if a value has another form.
    public init?(fieldJSON: FieldJSON) {
        guard case .object(let members) = fieldJSON else { return nil }
        let values = members.compactMapValues { Value(fieldJSON: $0) }
        guard values.count == members.count else { return nil }
        self = values
    }
    /// The object as JSON.
    public var fieldJSON: FieldJSON { .object(mapValues(\.fieldJSON)) }
}
