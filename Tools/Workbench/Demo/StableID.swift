import Essentials
import FoundationEssentials

/// Ids that are equal in every run: a second demo finds the people and entries of the first.
enum StableID {
    /// A version 8 UUID (RFC 9562 §5.8, a custom scheme) of the parts, by two passes of FNV-1a.
    ///
    /// Not for secrets: the parts determine the id.
    static func uuid(_ parts: String...) -> UUID {
        let text = parts.joined(separator: "\u{1F}")
        var bytes = (0..<2).flatMap { half -> [UInt8] in
            // FNV alone leaves the ids of similar texts similar.
            let hash = SplitMix64.mixed(fnv1a(text, basis: 0xCBF2_9CE4_8422_2325 ^ UInt64(half)))
            return (0..<8).map { UInt8(truncatingIfNeeded: hash >> (56 - 8 * $0)) }
        }
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return unsafe bytes.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    private static func fnv1a(_ text: String, basis: UInt64) -> UInt64 {
        text.utf8.reduce(basis) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    }
}
