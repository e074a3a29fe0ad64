/// The kept chunks of a PNG.
///
/// Source: W3C PNG (Third Edition) §5.3, §11.
struct PNGImage: StrippedImage {
    /// Chunks with pixels, animations, and display parameters.
    private static let copiedTypes = Set(
        [
            "IHDR", "PLTE", "IDAT", "tRNS", "gAMA", "cHRM", "sRGB", "iCCP", "sBIT", "bKGD", "pHYs", "cICP", "mDCV",
            "cLLI", "acTL", "fcTL", "fdAT",
        ].map(code))
    private static let signatureCount = 8
    private static let headerEnd = signatureCount + 12 + 13
    private static let header = code("IHDR")
    private static let data = code("IDAT")
    private static let exif = code("eXIf")
    private static let end = code("IEND")
    /// The bit of a chunk's type that allows a reader without support for it to skip it.
    private static let ancillary = 0x2000_0000

    private static func code(_ type: String) -> Int { type.utf8.reduce(0) { $0 << 8 | Int($1) } }

    /// The signature with the header chunk, and the other copied chunks except the last one.
    private var (head, rest): ([UInt8], [UInt8]) = ([], [])
    private var orientation: UInt8?
    private var hasData = false

    var encoded: [UInt8]? {
        guard hasData else { return nil }
        let exif = orientation.map { Self.chunk("eXIf", ExifOrientation.tiff($0)) } ?? []
        return head + exif + rest + Self.chunk("IEND", [])
    }

    mutating func read(_ bytes: [UInt8]) throws(ImageMetadata.Malformed) {
        let span = bytes.span
        rest.reserveCapacity(bytes.count)
        var position = Self.signatureCount
        while true {
            // Length, type, data, and a sum of the type and the data.
            let length = try span.number(at: position, byteCount: 4)
            let type = try span.number(at: position + 4, byteCount: 4)
            guard length <= bytes.count - position - 12 else {
                if type == Self.data, position >= Self.headerEnd {
                    rest += Self.chunk("IDAT", Array(bytes[(position + 8)...].prefix(length)))
                    hasData = true
                }
                throw ImageMetadata.Malformed()
            }
            let chunk = position..<position + 12 + length
            guard (type == Self.header) == (position == Self.signatureCount) else { throw ImageMetadata.Malformed() }
            if type == Self.header, chunk.upperBound != Self.headerEnd { throw ImageMetadata.Malformed() }
            if type == Self.end { return }
            if type == Self.exif {
                orientation =
                    orientation ?? ExifOrientation.find(in: span.extracting(position + 8..<chunk.upperBound - 4))
            } else if Self.copiedTypes.contains(type) {
                if type == Self.header { head = Array(bytes[..<chunk.upperBound]) } else { rest += bytes[chunk] }
                hasData = hasData || type == Self.data
            } else if type & Self.ancillary == 0 {
                throw ImageMetadata.Malformed()
            }
            position = chunk.upperBound
        }
    }

    static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        var chunk = bigEndian(UInt32(data.count))
        let content: [UInt8] = type.utf8 + data
        chunk += content
        chunk += bigEndian(sum(content))
        return chunk
    }

    private static func bigEndian(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { (shift: UInt32) in UInt8(truncatingIfNeeded: number >> shift) }
    }

    /// CRC-32 (PNG §5.5, Annex D).
    private static func sum(_ bytes: [UInt8]) -> UInt32 {
        var sum: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            sum ^= UInt32(byte)
            for _ in 0..<8 { sum = sum & 1 == 1 ? (sum >> 1) ^ 0xEDB8_8320 : sum >> 1 }
        }
        return ~sum
    }
}
