import Essentials
import FoundationEssentials

// Synthesized `encode(to:)` prefers these overloads to the standard library's, so that every encoded id is in lower
// case and equals PostgreSQL's text.
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

// Overloads for decoding, also in every synthesized `init(from:)` of this module: the gateway, imports and devices
// accept the same ids as `JSONObject` (Foundation's decoder accepts blanks and signs as digits), and flags and lists of
// ids may be absent or null.
extension KeyedDecodingContainer {
    func decode(_ type: UUID.Type, forKey key: Key) throws -> UUID { try decode(WrittenID.self, forKey: key).id }

    /// An absent list is empty.
    func decode(_ type: [UUID].Type, forKey key: Key) throws -> [UUID] {
        try decodeIfPresent(type, forKey: key) ?? []
    }

    /// An absent flag is false.
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try decodeIfPresent(type, forKey: key) ?? false }

    func decodeIfPresent(_ type: UUID.Type, forKey key: Key) throws -> UUID? {
        try decodeIfPresent(WrittenID.self, forKey: key)?.id
    }

    func decodeIfPresent(_ type: [UUID].Type, forKey key: Key) throws -> [UUID]? {
        try decodeIfPresent([WrittenID].self, forKey: key)?.map(\.id)
    }
}

/// An id decoded from JSON, in lower or upper case.
struct WrittenID: Decodable {
    let id: UUID

    init(from decoder: any Decoder) throws {
        guard let id = UUID(ascii: try decoder.singleValueContainer().decode(String.self)) else {
            throw decoder.corrupted("Attempted to decode UUID from invalid UUID string.")
        }
        self.id = id
    }
}
