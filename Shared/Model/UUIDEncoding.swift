import Essentials
import FoundationEssentials

// Synthesized `encode(to:)` picks these over the standard library's, so every id on the wire is in lower case and
// equals the text PostgreSQL has for it.
extension KeyedEncodingContainer {
    mutating func encode(_ id: UUID, forKey key: Key) throws { try encode(id.text, forKey: key) }

    mutating func encode(_ ids: [UUID], forKey key: Key) throws { try encode(ids.map(\.text), forKey: key) }

    mutating func encodeIfPresent(_ id: UUID?, forKey key: Key) throws {
        try encodeIfPresent(id?.text, forKey: key)
    }

    mutating func encodeIfPresent(_ ids: [UUID]?, forKey key: Key) throws {
        try encodeIfPresent(ids?.map(\.text), forKey: key)
    }
}

// The same of reading: the gateway, imports and devices take the ids that `JSONObject` reads. Foundation's own
// reading takes blanks and signs for digits.
extension KeyedDecodingContainer {
    func decode(_ type: UUID.Type, forKey key: Key) throws -> UUID {
        try id(try decode(String.self, forKey: key), forKey: key)
    }

    func decode(_ type: [UUID].Type, forKey key: Key) throws -> [UUID] {
        try decode([String].self, forKey: key).map { try id($0, forKey: key) }
    }

    func decodeIfPresent(_ type: UUID.Type, forKey key: Key) throws -> UUID? {
        try decodeIfPresent(String.self, forKey: key).map { try id($0, forKey: key) }
    }

    func decodeIfPresent(_ type: [UUID].Type, forKey key: Key) throws -> [UUID]? {
        try decodeIfPresent([String].self, forKey: key)?.map { try id($0, forKey: key) }
    }

    private func id(_ text: String, forKey key: Key) throws -> UUID {
        if let id = UUID(ascii: text) { return id }
        let context = DecodingError.Context(
            codingPath: codingPath + [key], debugDescription: "Attempted to decode UUID from invalid UUID string.")
        throw DecodingError.dataCorrupted(context)
    }
}
