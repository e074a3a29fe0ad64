/// The chunks of a WebP.
///
/// Source: RFC 9649 §2.3 to §2.7.
enum WebPImage {
    private static let headCount = 12
    private static let extendedCount = 10
    private static let frameHeadCount = 16
    private static let exifFlag: UInt8 = 0x08
    private static let xmpFlag: UInt8 = 0x04

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
        guard parts.hasImage else { throw ImageMetadata.Malformed() }
        var result: [UInt8] = []
        if var extended = parts.extended {
            extended[0] &= ~(exifFlag | xmpFlag)
            if let orientation = parts.orientation {
                extended[0] |= exifFlag
                parts.chunks += made(Array("EXIF".utf8)[...], ExifOrientation.tiff(orientation)[...])
            }
            result = made(Array("VP8X".utf8)[...], extended[...])
        }
        return file(result + parts.chunks)
    }

    /// The chunks that are kept.
    private struct Parts {
        var (chunks, extended, orientation): ([UInt8], [UInt8]?, UInt8?) = ([], nil, nil)
        var hasImage = false

        /// Reads up to the end of the image, or to the first damage.
        mutating func read(_ bytes: [UInt8]) throws(ImageMetadata.Malformed) {
            let span = bytes.span
            let size = try span.number(at: 4, byteCount: 4, isLittleEndian: true)
            chunks.reserveCapacity(bytes.count)
            var position = headCount
            while position < min(8 + size, bytes.count) {
                let (content, next) = try chunk(span, at: position, end: min(8 + size, bytes.count))
                switch String(decoding: bytes[position..<position + 4], as: UTF8.self) {
                case "VP8X":
                    guard position == headCount, content.count >= extendedCount else {
                        throw ImageMetadata.Malformed()
                    }
                    extended = Array(bytes[content.prefix(extendedCount)])
                case "VP8 ", "VP8L":
                    chunks += made(bytes[position..<position + 4], bytes[content])
                    hasImage = true
                case "ANMF":
                    chunks += made(bytes[position..<position + 4], try frame(bytes, content)[...])
                    hasImage = true
                case "ICCP", "ANIM", "ALPH":
                    chunks += made(bytes[position..<position + 4], bytes[content])
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
