/// The kept chunks of a WebP.
///
/// Source: RFC 9649 §2.3 to §2.7.
struct WebPImage: StrippedImage {
    private static let headCount = 12
    private static let extendedCount = 10
    private static let frameHeadCount = 16
    private static let exifFlag: UInt8 = 0x08
    private static let xmpFlag: UInt8 = 0x04

    private var (chunks, extended, orientation): ([UInt8], [UInt8]?, UInt8?) = ([], nil, nil)
    private var hasImage = false

    var encoded: [UInt8]? {
        guard hasImage else { return nil }
        guard var extended else { return Self.file(chunks) }
        extended[0] &= ~(Self.exifFlag | Self.xmpFlag)
        var exif: [UInt8] = []
        if let orientation {
            extended[0] |= Self.exifFlag
            exif = Self.made(Array("EXIF".utf8)[...], ExifOrientation.tiff(orientation)[...])
        }
        return Self.file(Self.made(Array("VP8X".utf8)[...], extended[...]) + chunks + exif)
    }

    mutating func read(_ bytes: [UInt8]) throws(ImageMetadata.Malformed) {
        let span = bytes.span
        let size = try span.number(at: 4, byteCount: 4, isLittleEndian: true)
        chunks.reserveCapacity(bytes.count)
        var position = Self.headCount
        while position < min(8 + size, bytes.count) {
            let (content, next) = try Self.chunk(span, at: position, end: min(8 + size, bytes.count))
            switch String(decoding: bytes[position..<position + 4], as: UTF8.self) {
            case "VP8X":
                guard position == Self.headCount, content.count >= Self.extendedCount else {
                    throw ImageMetadata.Malformed()
                }
                extended = Array(bytes[content.prefix(Self.extendedCount)])
            case "VP8 ", "VP8L":
                chunks += Self.made(bytes[position..<position + 4], bytes[content])
                hasImage = true
            case "ANMF":
                chunks += Self.made(bytes[position..<position + 4], try Self.frame(bytes, content)[...])
                hasImage = true
            case "ICCP", "ANIM", "ALPH":
                chunks += Self.made(bytes[position..<position + 4], bytes[content])
            case "EXIF":
                let start = content.lowerBound + (span.has("Exif\0\0", at: content.lowerBound) ? 6 : 0)
                guard start <= content.upperBound else { throw ImageMetadata.Malformed() }
                orientation = orientation ?? ExifOrientation.find(in: span.extracting(start..<content.upperBound))
            default: break
            }
            position = next
        }
        guard size >= 4, size <= bytes.count - 8 else { throw ImageMetadata.Malformed() }
    }

    /// Returns a frame of an animation, whose image is in chunks too.
    private static func frame(_ bytes: [UInt8], _ content: Range<Int>) throws(ImageMetadata.Malformed) -> [UInt8] {
        guard content.count >= frameHeadCount else { throw ImageMetadata.Malformed() }
        var position = content.lowerBound + frameHeadCount
        var result = Array(bytes[content.lowerBound..<position])
        while position < content.upperBound {
            let (part, next) = try chunk(bytes.span, at: position, end: content.upperBound)
            let type = bytes[position..<position + 4]
            if ["VP8 ", "VP8L", "ALPH"].contains(String(decoding: type, as: UTF8.self)) {
                result += made(type, bytes[part])
            }
            position = next
        }
        return result
    }

    /// Returns a chunk's content, and the next chunk's offset.
    private static func chunk(
        _ span: Span<UInt8>, at position: Int, end: Int
    ) throws(ImageMetadata.Malformed) -> (content: Range<Int>, next: Int) {
        let size = try span.number(at: position + 4, byteCount: 4, isLittleEndian: true)
        guard size <= end - position - 8 else { throw ImageMetadata.Malformed() }
        let content = position + 8..<position + 8 + size
        return (content, content.upperBound + size % 2)
    }

    /// Returns a WebP file of these chunks.
    static func file(_ chunks: [UInt8]) -> [UInt8] {
        made(Array("RIFF".utf8)[...], (Array("WEBP".utf8) + chunks)[...])
    }

    /// Returns a chunk.
    static func made(_ type: ArraySlice<UInt8>, _ content: ArraySlice<UInt8>) -> [UInt8] {
        var chunk = Array(type)
        chunk += [0, 8, 16, 24].map { (shift: Int) in UInt8(truncatingIfNeeded: content.count >> shift) }
        chunk += content
        if !content.count.isMultiple(of: 2) { chunk.append(0) }
        return chunk
    }
}
