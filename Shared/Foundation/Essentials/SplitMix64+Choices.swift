package import FoundationEssentials

extension SplitMix64 {
    /// Returns true with a probability of `percent` percent.
    package mutating func happens(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    /// Returns a unique id that is reproducible from the seed.
    package mutating func id() -> UUID {
        func bytes(_ number: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }
        let all = bytes(next()) + bytes(next())
        return unsafe all.withUnsafeBytes { unsafe UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}
