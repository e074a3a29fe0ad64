/// Removes from an image everything that a viewer does not need: camera data, GPS positions, comments, thumbnails, edit
/// histories, and bytes after the image's end.
///
/// Each format has an allow-list of parts; unknown parts are removed. The orientation and the colour profile stay,
/// since an image looks wrong without them. Pixels are copied unchanged. The function is deterministic and idempotent.
enum ImageMetadata {
    /// The bytes do not have the structure of their format.
    struct Malformed: Error {}

    /// Returns the image without its metadata.
    ///
    /// - Parameter mayBeDamaged: Whether an image that is damaged or incomplete is returned up to the damage, as a
    ///   viewer shows it. An earlier release stored such images.
    /// - Throws: ``Malformed``; with `mayBeDamaged`, if the damage is before the pixels.
    static func removed(
        from bytes: [UInt8], _ type: ImageType, mayBeDamaged: Bool = false
    ) throws(Malformed) -> [UInt8] {
        switch type {
        case .jpeg: try removed(from: bytes, JPEGImage(), mayBeDamaged)
        case .png: try removed(from: bytes, PNGImage(), mayBeDamaged)
        case .webp: try removed(from: bytes, WebPImage(), mayBeDamaged)
        }
    }

    private static func removed(
        from bytes: [UInt8], _ empty: some StrippedImage, _ mayBeDamaged: Bool
    ) throws(Malformed) -> [UInt8] {
        var image = empty
        do throws(Malformed) {
            try image.read(bytes)
        } catch {
            guard mayBeDamaged else { throw error }
        }
        guard let result = image.encoded else { throw Malformed() }
        return result
    }
}

/// The parts of an image that are kept.
protocol StrippedImage {
    /// Reads up to the end of the image, or to the first damage.
    mutating func read(_ bytes: [UInt8]) throws(ImageMetadata.Malformed)
    /// The image without metadata, of the parts that were read; `nil` if they have no pixels.
    var encoded: [UInt8]? { get }
}

extension Span where Element == UInt8 {
    /// Reads an unsigned number of up to 4 bytes.
    ///
    /// - Throws: ``ImageMetadata/Malformed`` when it is not within the bytes.
    func number(
        at offset: Int, byteCount: Int, isLittleEndian: Bool = false
    ) throws(ImageMetadata.Malformed) -> Int {
        guard offset >= 0, offset <= count - byteCount else { throw ImageMetadata.Malformed() }
        var number = 0
        for index in 0..<byteCount {
            number = number << 8 | Int(self[offset + (isLittleEndian ? byteCount - 1 - index : index)])
        }
        return number
    }

    /// Returns whether these bytes are at an offset.
    func has(_ text: StaticString, at offset: Int) -> Bool {
        let length = text.utf8CodeUnitCount
        guard offset >= 0, offset <= count - length else { return false }
        return text.description.utf8.enumerated().allSatisfy { self[offset + $0.offset] == $0.element }
    }
}

/// The orientation tag of EXIF, which defines how an image is rotated and mirrored when it is displayed.
///
/// Source: CIPA DC-008 (Exif 2.32) §4.6.2, §4.6.4 A; the structure is TIFF's (TIFF 6.0 §2).
enum ExifOrientation {
    private static let tag = 0x0112
    private static let short = 3
    /// The orientation of an image without a tag.
    private static let rotated = 2...8

    /// Reads the orientation of EXIF data; `nil` for an upright image, and for data that cannot be read.
    static func find(in tiff: Span<UInt8>) -> UInt8? {
        do throws(ImageMetadata.Malformed) {
            let isLittle = tiff.has("II*\0", at: 0)
            guard isLittle || tiff.has("MM\0*", at: 0) else { return nil }
            let directory = try tiff.number(at: 4, byteCount: 4, isLittleEndian: isLittle)
            let count = try tiff.number(at: directory, byteCount: 2, isLittleEndian: isLittle)
            for index in 0..<count {
                let entry = directory + 2 + index * 12
                guard try tiff.number(at: entry, byteCount: 2, isLittleEndian: isLittle) == tag else { continue }
                let type = try tiff.number(at: entry + 2, byteCount: 2, isLittleEndian: isLittle)
                let value = try tiff.number(at: entry + 8, byteCount: 2, isLittleEndian: isLittle)
                return type == short && rotated.contains(value) ? UInt8(value) : nil
            }
            return nil
        } catch {
            return nil
        }
    }

    /// Returns EXIF data with this one tag.
    static func tiff(_ orientation: UInt8) -> [UInt8] {
        let directory: [UInt8] = [0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]
        return "MM\0*".utf8 + [0, 0, 0, 8] + directory
    }
}
