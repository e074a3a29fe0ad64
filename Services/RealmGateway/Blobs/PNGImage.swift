/// The chunks of a PNG.
///
/// Source: W3C PNG (Third Edition) §5.3, §11.
enum PNGImage {
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

    /// - Parameter mayBeDamaged: As of ``ImageMetadata/removed(from:_:mayBeDamaged:)``.
    static func withoutMetadata(
        _ bytes: [UInt8], _ mayBeDamaged: Bool
    ) throws(ImageMetadata.Malformed) -> [UInt8] {
        var parts = Parts()
        do throws(ImageMetadata.Malformed) {
            try parts.read(bytes)
        } catch {
            guard mayBeDamaged else { throw error }
        }
        guard parts.hasData else { throw ImageMetadata.Malformed() }
        var result = Array(bytes[..<headerEnd])
        if let orientation = parts.orientation { result += chunk("eXIf", ExifOrientation.tiff(orientation)) }
        return result + parts.rest + chunk("IEND", [])
    }

    /// The copied chunks, except the first and the last one.
    private struct Parts {
        var (rest, orientation): ([UInt8], UInt8?) = ([], nil)
        var hasData = false

        /// Reads up to the end of the image, or to the first damage.
        mutating func read(_ bytes: [UInt8]) throws(ImageMetadata.Malformed) {
            let span = bytes.span
            rest.reserveCapacity(bytes.count)
            var position = signatureCount
            while true {
                // Length, type, data, and a sum of the type and the data.
                let length = try span.number(at: position, byteCount: 4)
                let type = try span.number(at: position + 4, byteCount: 4)
                guard length <= bytes.count - position - 12 else {
                    if type == data, position >= headerEnd {
                        rest += PNGImage.chunk("IDAT", Array(bytes[(position + 8)...].prefix(length)))
                        hasData = true
                    }
                    throw ImageMetadata.Malformed()
                }
                let chunk = position..<position + 12 + length
                guard (type == header) == (position == signatureCount) else { throw ImageMetadata.Malformed() }
                if type == header, chunk.upperBound != headerEnd { throw ImageMetadata.Malformed() }
                if type == end { return }
                if type == exif {
                    orientation =
                        orientation ?? ExifOrientation.find(in: span.extracting(position + 8..<chunk.upperBound - 4))
                } else if copiedTypes.contains(type) {
                    if type != header { rest += bytes[chunk] }
                    hasData = hasData || type == data
                } else if type & ancillary == 0 {
                    throw ImageMetadata.Malformed()
                }
                position = chunk.upperBound
            }
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
