import Essentials
import FoundationEssentials

/// Ids that are equal in every run: a second demo finds the people and entries of the first.
enum StableID {
    /// A version 8 UUID (RFC 9562 §5.8, a custom scheme) of the parts, by two passes of FNV-1a.
    ///
    /// Not for secrets: the parts determine the id.
    static func uuid(_ parts: String...) -> UUID {
        let text = parts.joined(separator: "\u{1F}")
        var bytes = [UInt8](repeating: 0, count: 16)
        for half in 0..<2 {
            // FNV alone leaves the ids of similar texts similar.
            let hash = SplitMix64.mixed(fnv1a(text, basis: 0xCBF2_9CE4_8422_2325 ^ UInt64(half)))
            for index in 0..<8 { bytes[half * 8 + index] = UInt8(truncatingIfNeeded: hash >> (UInt64(7 - index) * 8)) }
        }
        bytes[6] = bytes[6] & 0x0F | 0x80
        bytes[8] = bytes[8] & 0x3F | 0x80
        return UUID(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9],
                bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            ))
    }

    private static func fnv1a(_ text: String, basis: UInt64) -> UInt64 {
        text.utf8.reduce(basis) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    }
}
