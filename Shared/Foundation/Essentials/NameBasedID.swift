internal import Crypto
public import FoundationEssentials

extension UUID {
    /// Creates the name-based id of `name` within `namespace`: version 5 of RFC 9562, 5.5.
    public init(name: String, in namespace: UUID) {
        var hash = Insecure.SHA1()
        unsafe withUnsafeBytes(of: namespace.uuid) { unsafe hash.update(bufferPointer: $0) }
        hash.update(data: Array(name.utf8))
        let bytes = Array(hash.finalize())
        self.init(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6] & 0x0F | 0x50, bytes[7],
                bytes[8] & 0x3F | 0x80, bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            ))
    }
}
