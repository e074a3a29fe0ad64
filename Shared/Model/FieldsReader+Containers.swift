/// The members of an object, read by the rules of ``FieldsReader``.
struct KeyedFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let reader: FieldsReader
    let members: [FieldsReader.Member]

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { members.compactMap { Key(stringValue: $0.key) } }

    private func find(_ key: Key) -> FieldsReader? {
        let name = key.stringValue
        return members.first { $0.key == name }.map { reader.at($0.value) }
    }

    /// Reads a member and adds its name to the path of a reported problem.
    private func read<Value>(_ key: Key, _ body: (FieldsReader) throws -> Value) throws -> Value {
        guard let value = find(key) else { throw FieldProblem("is missing").inside(key.stringValue) }
        return try read(value, key, body)
    }

    private func read<Value>(
        _ value: FieldsReader, _ key: Key, _ body: (FieldsReader) throws -> Value
    ) throws -> Value {
        do { return try body(value) } catch let problem as FieldProblem { throw problem.inside(key.stringValue) }
    }

    /// Reads a member; `nil` if it is absent or `null`. The default implementation looks it up three times.
    private func readIfPresent<Value>(_ key: Key, _ body: (FieldsReader) throws -> Value) throws -> Value? {
        guard let value = find(key), !value.isNull else { return nil }
        return try read(value, key, body)
    }

    func contains(_ key: Key) -> Bool { find(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try read(key) { $0.isNull } }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try read(key) { try $0.truth() } }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try read(key) { try $0.text() } }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try read(key) { try $0.decimal() } }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { Float(try decode(Double.self, forKey: key)) }
    func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type, forKey key: Key) throws -> Number {
        try read(key) { try $0.whole(type) }
    }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try read(key) { try $0.any(type) } }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try readIfPresent(key) { try $0.truth() }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try readIfPresent(key) { try $0.text() }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try readIfPresent(key) { try $0.decimal() }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try readIfPresent(key) { try $0.whole(type) }
    }
    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try readIfPresent(key) { try $0.any(type) }
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> { try read(key) { try $0.container(keyedBy: type) } }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try read(key) { try $0.unkeyedContainer() }
    }
    func superDecoder() throws -> any Decoder { reader }
    func superDecoder(forKey key: Key) throws -> any Decoder { try read(key) { $0 } }
}

/// The elements of a list, read by the rules of ``FieldsReader``.
struct ListedFields: UnkeyedDecodingContainer {
    let reader: FieldsReader
    let elements: [Range<Int>]
    private(set) var currentIndex = 0

    var codingPath: [any CodingKey] { [] }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    /// Reads the next element and adds its index to the path of a reported problem.
    private mutating func read<Value>(_ body: (FieldsReader) throws -> Value) throws -> Value {
        do {
            guard !isAtEnd else { throw FieldProblem("is missing") }
            let value = try body(reader.at(elements[currentIndex]))
            currentIndex += 1
            return value
        } catch let problem as FieldProblem {
            throw problem.inside("[\(currentIndex)]")
        }
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, reader.at(elements[currentIndex]).isNull else { return false }
        currentIndex += 1
        return true
    }
    mutating func decode(_ type: Bool.Type) throws -> Bool { try read { try $0.truth() } }
    mutating func decode(_ type: String.Type) throws -> String { try read { try $0.text() } }
    mutating func decode(_ type: Double.Type) throws -> Double { try read { try $0.decimal() } }
    mutating func decode(_ type: Float.Type) throws -> Float { Float(try decode(Double.self)) }
    mutating func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
        try read { try $0.whole(type) }
    }
    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try read { try $0.any(type) } }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> { try read { try $0.container(keyedBy: type) } }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try read { try $0.unkeyedContainer() }
    }
    mutating func superDecoder() throws -> any Decoder { try read { $0 } }
}

/// A value by itself, read by the rules of ``FieldsReader``.
struct SingleField: SingleValueDecodingContainer {
    let reader: FieldsReader

    var codingPath: [any CodingKey] { [] }

    func decodeNil() -> Bool { reader.isNull }
    func decode(_ type: Bool.Type) throws -> Bool { try reader.truth() }
    func decode(_ type: String.Type) throws -> String { try reader.text() }
    func decode(_ type: Double.Type) throws -> Double { try reader.decimal() }
    func decode(_ type: Float.Type) throws -> Float { Float(try reader.decimal()) }
    func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
        try reader.whole(type)
    }
    func decode<T: Decodable>(_ type: T.Type) throws -> T { try reader.any(type) }
}
