/// The kept segments of a JPEG.
///
/// Sources: ITU-T T.81 Annex B (markers), T.871 (JFIF), T.872 §6.5.3 (Adobe), ICC.1 Annex B.4 (profiles).
struct JPEGImage: StrippedImage {
    private static let endOfImage: UInt8 = 0xD9
    private static let startOfScan: UInt8 = 0xDA

    /// The handling of a segment, by its marker.
    private enum Treatment {
        /// Tables, frames and scans.
        case keep
        case frame
        case jfif
        case colourProfile
        case adobe
        case exif
        case drop
        /// Markers without a length, and reserved ones: invalid at the start of a segment.
        case reject

        init(_ marker: UInt8) {
            switch marker {
            case 0xC4, 0xCC, 0xDA, 0xDB...0xDF: self = .keep
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF: self = .frame
            case 0xE0: self = .jfif
            case 0xE1: self = .exif
            case 0xE2: self = .colourProfile
            case 0xEE: self = .adobe
            case 0xC8, 0xE3...0xED, 0xEF, 0xF0...0xFE: self = .drop
            default: self = .reject
            }
        }
    }

    private var (head, rest): ([UInt8], [UInt8]) = ([0xFF, 0xD8], [])
    private var orientation: UInt8?
    private var (hasFrame, hasScan) = (false, false)

    var encoded: [UInt8]? {
        guard hasFrame, hasScan else { return nil }
        var image = head
        if let orientation {
            let exif: [UInt8] = "Exif\0\0".utf8 + ExifOrientation.tiff(orientation)
            image += [0xFF, 0xE1, 0, UInt8(exif.count + 2)]
            image += exif
        }
        return image + rest + [0xFF, Self.endOfImage]
    }

    mutating func read(_ bytes: [UInt8]) throws(ImageMetadata.Malformed) {
        let span = bytes.span
        rest.reserveCapacity(bytes.count)
        var position = 2
        while true {
            let marker = try Self.nextMarker(span, &position)
            if marker == Self.endOfImage { return }
            let treatment = Treatment(marker)
            if case .reject = treatment { throw ImageMetadata.Malformed() }
            let length = try span.number(at: position, byteCount: 2)
            guard length >= 2, length <= bytes.count - position else { throw ImageMetadata.Malformed() }
            let (content, end) = (position + 2, position + length)
            switch treatment {
            case .keep, .frame:
                rest += bytes[position - 2..<end]
                if case .frame = treatment { hasFrame = true }
            case .jfif where span.has("JFIF\0", at: content) && length >= 16 && head.count == 2:
                // Without its thumbnail, which may display cropped parts of the image.
                head += [0xFF, marker, 0, 16]
                head += bytes[content..<content + 12]
                head += [0, 0]
            case .colourProfile where span.has("ICC_PROFILE\0", at: content):
                rest += bytes[position - 2..<end]
            case .adobe where span.has("Adobe", at: content) && length >= 14:
                rest += [0xFF, marker, 0, 14]
                rest += bytes[content..<content + 12]
            case .exif where span.has("Exif\0\0", at: content) && content + 6 <= end:
                orientation = orientation ?? ExifOrientation.find(in: span.extracting(content + 6..<end))
            case .jfif, .colourProfile, .adobe, .exif, .drop, .reject: break
            }
            position = end
            guard marker == Self.startOfScan else { continue }
            hasScan = true
            let scan = position
            let isEnded = Self.skipScan(span, &position)
            rest += bytes[scan..<position]
            guard isEnded else { throw ImageMetadata.Malformed() }
        }
    }

    /// Reads a marker, with the bytes 0xFF that may be before it. Other bytes between segments, which some programs
    /// leave there and decoders skip, are skipped too.
    private static func nextMarker(
        _ span: Span<UInt8>, _ position: inout Int
    ) throws(ImageMetadata.Malformed) -> UInt8 {
        while true {
            while try span.number(at: position, byteCount: 1) != 0xFF { position += 1 }
            while try span.number(at: position, byteCount: 1) == 0xFF { position += 1 }
            position += 1
            if span[position - 1] != 0 { return span[position - 1] }
        }
    }

    /// Skips coded data, which ends before the next marker other than a restart (RST0 to RST7).
    ///
    /// - Returns: Whether such a marker follows; false at the end of the bytes.
    private static func skipScan(_ span: Span<UInt8>, _ position: inout Int) -> Bool {
        while position < span.count {
            guard span[position] == 0xFF else {
                position += 1
                continue
            }
            // Fill bytes 0xFF before a marker are not part of the data.
            var next = position + 1
            while next < span.count, span[next] == 0xFF { next += 1 }
            guard next < span.count else { return false }
            switch span[next] {
            case 0x00, 0xD0...0xD7: position = next + 1
            default: return true
            }
        }
        return false
    }
}
