/// Classification of IP addresses as public or special-purpose.
///
/// Sources: IANA's registries of special-purpose IPv4 and IPv6 addresses (RFC 6890); RFC 4291, 2.5.5.2.
enum PublicAddressRule {
    /// A CIDR block: the leading bytes and the prefix length.
    private struct Block {
        let bytes: [UInt8]
        let bitCount: Int

        init(_ bytes: UInt8..., bits: Int) { (self.bytes, bitCount) = (bytes, bits) }

        func contains(_ address: [UInt8]) -> Bool {
            (0..<bitCount).allSatisfy { bit in
                let mask = UInt8(0x80) >> (bit % 8)
                return address[bit / 8] & mask == bytes[bit / 8] & mask
            }
        }
    }

    /// Special-purpose IPv4 blocks, which are not globally reachable.
    private static let special4 = [
        // This network; private use; shared address space; loopback; link-local, where clouds serve instance metadata.
        Block(0, bits: 8), Block(10, bits: 8), Block(172, 16, bits: 12), Block(192, 168, bits: 16),
        Block(100, 64, bits: 10), Block(127, bits: 8), Block(169, 254, bits: 16),
        // Protocol assignments; documentation; 6to4 relay; benchmarking; multicast; reserved and broadcast.
        Block(192, 0, 0, bits: 24), Block(192, 0, 2, bits: 24), Block(198, 51, 100, bits: 24),
        Block(203, 0, 113, bits: 24), Block(192, 88, 99, bits: 24), Block(198, 18, bits: 15), Block(224, bits: 4),
        Block(240, bits: 4),
    ]
    private static let global6 = Block(0x20, bits: 3)
    /// Special-purpose blocks of the global range: protocol assignments; documentation; 6to4.
    private static let special6 = [
        Block(0x20, 0x01, 0, bits: 23), Block(0x20, 0x01, 0x0D, 0xB8, bits: 32), Block(0x3F, 0xFF, 0, bits: 20),
        Block(0x20, 0x02, bits: 16),
    ]
    /// IPv4-mapped IPv6 addresses.
    private static let mapped4 = Block(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, bits: 96)

    /// - Parameter address: The 4 bytes of an IPv4 address or the 16 of an IPv6 address; other lengths are not public.
    static func isPublic(_ address: [UInt8]) -> Bool {
        switch address.count {
        case 4: !special4.contains { $0.contains(address) }
        case 16 where mapped4.contains(address): isPublic(Array(address[12...]))
        case 16: global6.contains(address) && !special6.contains { $0.contains(address) }
        default: false
        }
    }
}
