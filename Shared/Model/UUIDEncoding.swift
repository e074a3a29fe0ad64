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
    func decode(_ type: UUID.Type, forKey key: Key) throws -> UUID { try decode(WrittenID.self, forKey: key).id }

    func decode(_ type: [UUID].Type, forKey key: Key) throws -> [UUID] {
        try decode([WrittenID].self, forKey: key).map(\.id)
    }

    func decodeIfPresent(_ type: UUID.Type, forKey key: Key) throws -> UUID? {
        try decodeIfPresent(WrittenID.self, forKey: key)?.id
    }

    func decodeIfPresent(_ type: [UUID].Type, forKey key: Key) throws -> [UUID]? {
        try decodeIfPresent([WrittenID].self, forKey: key)?.map(\.id)
    }
}

/// An id as it is read from JSON, in small or capital letters.
struct WrittenID: Decodable {
    let id: UUID

    init(from decoder: any Decoder) throws {
        guard let id = UUID(ascii: try decoder.singleValueContainer().decode(String.self)) else {
            throw decoder.corrupted("Attempted to decode UUID from invalid UUID string.")
        }
        self.id = id
    }
}
