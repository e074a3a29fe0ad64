public import FoundationEssentials

/// An object's JSON bytes with the ranges of its members, for reading, replacing and adding fields as bytes.
public struct JSONObject: Equatable, Sendable {
    /// The bytes to which the members' ranges refer.
    public let bytes: [UInt8]
    /// The members in their order.
    public let members: [JSONMember]

    /// Validates and splits an object.
    ///
    /// - Parameter memberCountMax: The maximum number of members.
    /// - Throws: ``JSONError``, the first one detected.
    public init(_ bytes: [UInt8], memberCountMax: Int = JSONCheck.memberCountMax) throws(JSONError) {
        self.bytes = bytes
        members = try JSONCheck.members(of: bytes, countMax: memberCountMax)
    }

    /// Returns the raw value of a field; `nil` if the object has no such field.
    public func value(of key: String) -> ArraySlice<UInt8>? {
        members.first { $0.key == key }.map { bytes[$0.value] }
    }

    /// Returns the value of a string field; `nil` if the field is absent or not a string.
    public func text(of key: String) -> String? { value(of: key).flatMap(Self.text) }

    /// Returns the value of a member that is a string, otherwise `nil`.
    public func text(of member: JSONMember) -> String? { Self.text(bytes[member.value]) }

    /// Returns the value of a UUID field, in lower or upper case; `nil` if the field is absent or not a UUID.
    public func id(of key: String) -> UUID? {
        guard let value = value(of: key) else { return nil }
        // Parses bytes instead of a string: services read the ids of every object.
        guard value.count == Self.idLength else { return Self.text(value).flatMap { UUID(ascii: $0) } }
        guard value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") else { return nil }
        let characters = value.dropFirst().dropLast()
        return unsafe UUID(ascii: characters.span.bytes)
    }

    /// The length of a raw UUID value with its quotes.
    private static let idLength = 38

    /// Whether a field is `true`.
    public func isTrue(_ key: String) -> Bool { value(of: key)?.elementsEqual("true".utf8) ?? false }

    /// Returns this object with the members of `patch`, which replace members of the same name and follow the others.
    /// Outermost blanks are dropped.
    public func merging(_ patch: JSONObject) -> [UInt8] {
        var merged: [UInt8] = []
        for member in members {
            Self.append(
                key: bytes[member.keyRange], value: patch.value(of: member.key) ?? bytes[member.value], to: &merged)
        }
        let present = Set(members.map(\.key))
        for member in patch.members where !present.contains(member.key) {
            Self.append(key: patch.bytes[member.keyRange], value: patch.bytes[member.value], to: &merged)
        }
        return Self.closed(merged)
    }

    /// Returns this object without a member.
    package func removing(_ key: String) -> [UInt8] {
        var rest: [UInt8] = []
        for member in members where member.key != key {
            Self.append(key: bytes[member.keyRange], value: bytes[member.value], to: &rest)
        }
        return Self.closed(rest)
    }

    /// Returns this object with another value of each member.
    package func mapValues(_ value: (JSONMember) -> ArraySlice<UInt8>) -> [UInt8] {
        var object: [UInt8] = []
        for member in members { Self.append(key: bytes[member.keyRange], value: value(member), to: &object) }
        return Self.closed(object)
    }

    /// Writes an object with these members, whose keys need no escaping.
    package static func bytes(of members: [(key: String, value: ArraySlice<UInt8>)]) -> [UInt8] {
        var object: [UInt8] = []
        for member in members { append(key: Array(member.key.utf8)[...], value: member.value, to: &object) }
        return closed(object)
    }

    /// Decodes a raw JSON string; returns `nil` if the value is not a string.
    package static func text(_ value: ArraySlice<UInt8>) -> String? {
        guard value.first == UInt8(ascii: "\""), value.count >= 2 else { return nil }
        return JSONMember.text(value.dropFirst().dropLast())
    }

    private static func append(key: ArraySlice<UInt8>, value: ArraySlice<UInt8>, to object: inout [UInt8]) {
        object.append(UInt8(ascii: object.isEmpty ? "{" : ","))
        object.append(UInt8(ascii: "\""))
        object.append(contentsOf: key)
        object.append(contentsOf: "\":".utf8)
        object.append(contentsOf: value)
    }

    private static func closed(_ object: [UInt8]) -> [UInt8] {
        (object.isEmpty ? Array("{".utf8) : object) + [UInt8(ascii: "}")]
    }
}
