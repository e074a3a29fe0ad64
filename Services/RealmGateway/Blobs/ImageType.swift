/// The format of an image, detected by its first bytes.
enum ImageType: String, CaseIterable, Sendable {
    case jpeg = "image/jpeg"
    case png = "image/png"
    case webp = "image/webp"

    /// - Returns: `nil` for any other format.
    init?(of bytes: [UInt8]) {
        guard let type = Self.allCases.first(where: { $0.begins(bytes) }) else { return nil }
        self = type
    }

    /// Sources: ITU-T T.81 B.1.1.3 (SOI and the next marker's first byte), RFC 2083 §3.1, RFC 9649 §2.4.
    private func begins(_ bytes: [UInt8]) -> Bool {
        switch self {
        case .jpeg: bytes.starts(with: [0xFF, 0xD8, 0xFF])
        case .png: bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        case .webp: bytes.starts(with: Array("RIFF".utf8)) && bytes.dropFirst(8).starts(with: Array("WEBP".utf8))
        }
    }

    /// Returns whether the bytes are HEIC, HEIF or AVIF, which phones make and not all browsers display.
    ///
    /// Source: ISO/IEC 23008-12 §10.2; a file begins with a box `ftyp` and its brand.
    static func isHEIF(_ bytes: [UInt8]) -> Bool {
        let brands = ["heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "mif2", "msf1", "avif", "avis"]
        return bytes.dropFirst(4).starts(with: "ftyp".utf8)
            && brands.contains { bytes.dropFirst(8).starts(with: $0.utf8) }
    }
}
