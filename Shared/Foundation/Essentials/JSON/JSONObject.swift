public import FoundationEssentials

/// An object's JSON bytes together with where its members are: fields are read, replaced and added as bytes.
public struct JSONObject: Equatable, Sendable {
    /// The bytes the members are offsets of.
    public let bytes: [UInt8]
    /// The members in their order.
    public let members: [JSONMember]

    /// Checks and splits an object.
    ///
    /// - Parameter memberCountMax: How many members it may have.
    /// - Throws: ``JSONProblem``, the first one found.
    public init(_ bytes: [UInt8], memberCountMax: Int = JSONCheck.memberCountMax) throws(JSONProblem) {
        self.bytes = bytes
        members = try JSONCheck.members(of: bytes, countMax: memberCountMax)
    }

    /// The raw value of a field; `nil` when the object has no such field.
    public func value(of key: String) -> ArraySlice<UInt8>? {
        members.first { $0.key == key }.map { bytes[$0.value] }
    }

    /// The value of a field that is a string; `nil` when it is absent or something else.
    public func text(of key: String) -> String? { value(of: key).flatMap(Self.text) }

    /// The value of one of the members that is a string; `nil` when it is something else.
    public func text(of member: JSONMember) -> String? { Self.text(bytes[member.value]) }

    /// The value of a field that is a UUID, in small or capital letters.
    public func id(of key: String) -> UUID? {
        guard let value = value(of: key) else { return nil }
        // Not through a text: services that decide much read ids of every object.
        guard value.count == Self.idLength else { return Self.text(value).flatMap { UUID(ascii: $0) } }
        guard value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") else { return nil }
        let characters = value.dropFirst().dropLast()
        return unsafe UUID(ascii: characters.span.bytes)
    }

    /// Of an id as a raw value, with its quotes.
    private static let idLength = 38

    /// Whether a field is `true`.
    public func isTrue(_ key: String) -> Bool { value(of: key)?.elementsEqual("true".utf8) ?? false }

    /// This object with the members of `patch` in place of, or after, its own. Its outermost blanks are not kept.
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

    /// This object without a member.
    package func removing(_ key: String) -> [UInt8] {
        var rest: [UInt8] = []
        for member in members where member.key != key {
            Self.append(key: bytes[member.keyRange], value: bytes[member.value], to: &rest)
        }
        return Self.closed(rest)
    }

    /// The object with these members, whose keys need no escaping.
    package static func bytes(of members: [(key: String, value: ArraySlice<UInt8>)]) -> [UInt8] {
        var object: [UInt8] = []
        for member in members { append(key: Array(member.key.utf8)[...], value: member.value, to: &object) }
        return closed(object)
    }

    /// The text of a raw JSON string; `nil` when the value is something else.
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
