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
