package import FoundationEssentials

/// SplitMix64 (Steele, Lea, Flood 2014): the same sequence for the same seed on every machine. For generated data, the
/// sandbox's faults and simulations; not for secrets.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.mixed(state)
    }

    /// The generator's output function, a bijection that maps similar numbers to dissimilar ones.
    package static func mixed(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns true with a probability of `percent` percent.
    package mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    /// Returns a unique id that is reproducible from the seed.
    package mutating func id() -> UUID {
        func bytes(_ number: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
        let all = bytes(next()) + bytes(next())
        return unsafe all.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
