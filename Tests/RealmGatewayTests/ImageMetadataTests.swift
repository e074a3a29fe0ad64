import Essentials
import TestSupport
import Testing

@testable import RealmGateway

/// Metadata of images is removed, except the orientation and the colour profile.
@Suite(.ownThreads) struct ImageMetadataTests {
    static let secret = "SECRET 55.6761N 12.5683E"
    private static let hidden = Array(secret.utf8)

    /// EXIF data with a camera's name, an orientation and a private text.
    static func exif(_ orientation: UInt8, isLittleEndian: Bool = false) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
            return isLittleEndian ? bytes : bytes.reversed()
        }
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
            TestImage.joined(number(tag, 2), number(type, 2), number(count, 4), value)
        }
        return TestImage.joined(
            Array((isLittleEndian ? "II*\0" : "MM\0*").utf8), number(8, 4), number(2, 2),
            entry(0x010F, 2, hidden.count, number(38, 4)),
            entry(0x0112, 3, 1, number(Int(orientation), 2) + [0, 0]), number(0, 4), hidden)
    }

    private static func segment(_ marker: UInt8, _ name: String, _ content: [UInt8]) -> [UInt8] {
        TestImage.segment(marker, TestImage.joined(Array(name.utf8), content))
    }

    private static let profile = segment(0xE2, "ICC_PROFILE\0", [1, 1, 9, 9, 9])
    private static let adobe = segment(0xEE, "Adobe", [0, 100, 0, 0, 0, 0, 1])
    private static let jfif = segment(0xE0, "JFIF\0", [1, 2, 0, 0, 72, 0, 72, 0, 0])
    /// Another scan, which has a stuffed byte and a restart.
    private static let scan = TestImage.joined(
        TestImage.segment(0xDA, [1, 1, 0, 0, 63, 0]), [1, 0xFF, 0, 2, 0xFF, 0xD3, 3])

    /// An image with all metadata that programs write.
    static func photo(_ type: ImageType, _ exif: [UInt8]) -> [UInt8] {
        switch type {
        case .jpeg:
            let head = TestImage.joined(
                segment(0xE0, "JFIF\0", [1, 2, 0, 0, 72, 0, 72, 2, 4] + hidden), segment(0xE1, "Exif\0\0", exif), adobe,
                segment(0xE1, "http://ns.adobe.com/xap/1.0/\0", hidden), segment(0xE2, "MPF\0", hidden), profile,
                ([3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15] as [UInt8]).flatMap { TestImage.segment(0xE0 + $0, hidden) },
                TestImage.segment(0xFE, hidden))
            // A fill byte before a marker, and a film after the image's end.
            let middle = TestImage.joined(scan, [0xFF], TestImage.segment(0xFE, hidden))
            return TestImage.joined(TestImage.jpeg(head, middle: middle), hidden)
        case .png:
            let head = TestImage.joined(
                PNGImage.chunk("eXIf", exif), PNGImage.chunk("tIME", hidden), PNGImage.chunk("gAMA", [0, 0, 1, 1]),
                PNGImage.chunk("iCCP", [9, 9]), PNGImage.chunk("prVt", hidden))
            let tail = ["tEXt", "zTXt", "iTXt", "caBX"].flatMap { PNGImage.chunk($0, hidden) }
            return TestImage.joined(TestImage.png(head, tail: tail), hidden)
        case .webp:
            let frame = TestImage.webp([("ALPH", [1]), ("VP8 ", [2, 2]), ("XXXX", hidden)]).dropFirst(12)
            let image = TestImage.webp([
                ("VP8X", [0x3E, 0, 0, 0, 1, 0, 0, 1, 0, 0]), ("ICCP", [9, 9]), ("ANIM", [1, 2, 3, 4, 5, 6]),
                ("ANMF", Array(repeating: 0, count: 16) + frame), ("VP8 ", Array("picture".utf8)),
                ("EXIF", Array("Exif\0\0".utf8) + exif), ("XMP ", hidden), ("ABCD", hidden),
            ])
            return TestImage.joined(image, hidden)
        }
    }

    /// The stripped form of ``photo(_:_:)``.
    static func bare(_ type: ImageType, _ orientation: UInt8) -> [UInt8] {
        let isTurned = orientation > 1
        let tiff = isTurned ? ExifOrientation.tiff(orientation) : []
        switch type {
        case .jpeg:
            let exif = isTurned ? segment(0xE1, "Exif\0\0", tiff) : []
            return TestImage.jpeg(TestImage.joined(jfif, exif, adobe, profile), middle: scan)
        case .png:
            let exif = isTurned ? PNGImage.chunk("eXIf", tiff) : []
            return TestImage.png(
                TestImage.joined(exif, PNGImage.chunk("gAMA", [0, 0, 1, 1]), PNGImage.chunk("iCCP", [9, 9])))
        case .webp:
            let frame = TestImage.webp([("ALPH", [1]), ("VP8 ", [2, 2])]).dropFirst(12)
            return TestImage.webp(
                [
                    ("VP8X", [isTurned ? 0x3A : 0x32, 0, 0, 0, 1, 0, 0, 1, 0, 0]), ("ICCP", [9, 9]),
                    ("ANIM", [1, 2, 3, 4, 5, 6]), ("ANMF", Array(repeating: 0, count: 16) + frame),
                    ("VP8 ", Array("picture".utf8)),
                ] + (isTurned ? [("EXIF", tiff)] : []))
        }
    }

    private static func contains(_ bytes: [UInt8]) -> Bool { bytes.firstRange(of: hidden) != nil }

    @Test(arguments: ImageType.allCases, 1...8 as ClosedRange<UInt8>)
    func metadataIsRemovedExceptOrientationAndColours(type: ImageType, orientation: UInt8) throws {
        for isLittleEndian in [false, true] {
            let photo = Self.photo(type, Self.exif(orientation, isLittleEndian: isLittleEndian))
            #expect(Self.contains(photo))
            let stripped = try ImageMetadata.removed(from: photo, type)
            #expect(stripped == Self.bare(type, orientation))
            #expect(!Self.contains(stripped))
            #expect(try ImageMetadata.removed(from: stripped, type) == stripped)
        }
    }

    /// Photo editors leave such bytes: a segment's length is too short, or zeros follow it.
    @Test func strayBytesBetweenSegmentsAreRemoved() throws {
        let stray: [[UInt8]] = [Self.hidden, [0], [0xFF, 0], [0, 0xFF, 0, 1], [0xFF, 0xFF]]
        for bytes in stray {
            let photo = TestImage.jpeg(
                TestImage.joined(Self.jfif, bytes, Self.profile, bytes), middle: TestImage.joined(bytes, Self.scan))
            let bare = TestImage.jpeg(TestImage.joined(Self.jfif, Self.profile), middle: Self.scan)
            #expect(try ImageMetadata.removed(from: photo, .jpeg) == bare, "\(bytes)")
        }
    }

    /// A truncated file is rejected; only bytes after the image's end may be missing.
    @Test(arguments: ImageType.allCases) func truncatedImagesAreRejected(type: ImageType) throws {
        let photo = Self.photo(type, Self.exif(6))
        let end = photo.count - Self.hidden.count
        for count in 0..<end {
            #expect(throws: ImageMetadata.Malformed.self, "\(count)") {
                _ = try ImageMetadata.removed(from: Array(photo.prefix(count)), type)
            }
        }
        #expect(try ImageMetadata.removed(from: Array(photo.prefix(end)), type) == Self.bare(type, 6))
    }

    /// A stored image that ends within its pixels is returned up to its end, and never with metadata.
    @Test(arguments: ImageType.allCases) func truncatedStoredImagesAreStripped(type: ImageType) throws {
        let photo = Self.photo(type, Self.exif(6))
        var servedCount = 0
        for count in 0..<photo.count - Self.hidden.count {
            let cut = Array(photo.prefix(count))
            guard let stripped = try? ImageMetadata.removed(from: cut, type, mayBeDamaged: true) else { continue }
            servedCount += 1
            #expect(!Self.contains(stripped), "\(count)")
            #expect(try ImageMetadata.removed(from: stripped, type) == stripped, "\(count)")
        }
        #expect(servedCount > 0)
        let bare = TestImage.make(type, "pixels")
        // Without the last pixels and the rest.
        let cut = Array(bare.dropLast(type == .jpeg ? 3 : type == .png ? 17 : 1))
        let shorter = try? ImageMetadata.removed(from: cut, type, mayBeDamaged: true)
        #expect(shorter == (type == .webp ? nil : TestImage.make(type, "pixel")))
    }

    /// With any value of one byte, the parser terminates and is idempotent.
    @Test(arguments: ImageType.allCases) func damagedImagesAreRejectedOrStripped(type: ImageType) throws {
        let photo = Self.photo(type, Self.exif(6))
        var refused = 0
        for index in photo.indices {
            for value in [0, 1, 0x7F, 0x80, 0xD9, 0xFE, 0xFF] as [UInt8] {
                var damaged = photo
                damaged[index] = value
                if let served = try? ImageMetadata.removed(from: damaged, type, mayBeDamaged: true) {
                    #expect(try ImageMetadata.removed(from: served, type) == served, "\(index) \(value)")
                }
                guard let stripped = try? ImageMetadata.removed(from: damaged, type) else {
                    refused += 1
                    continue
                }
                #expect(stripped.count <= damaged.count)
                #expect(try ImageMetadata.removed(from: stripped, type) == stripped, "\(index) \(value)")
            }
        }
        #expect(refused > 0)
    }

    @Test func maliciousStructuresAreRejected() {
        let joined = TestImage.joined
        let (signature, picture) = (Array(TestImage.png().prefix(8)), [("VP8 ", [1])] as [(String, [UInt8])])
        let zeros = [UInt8](repeating: 0, count: 40)
        let jpegs: [[UInt8]] = [
            [0xFF, 0xD8, 0xFF, 0xD9], joined([0xFF, 0xD8], TestImage.segment(0xC0, []), [0xFF, 0xD9]),
            [0xFF, 0xD8, 0xFF, 0xE1, 0, 0], [0xFF, 0xD8, 0xFF, 0xE1, 0xFF, 0xFF],
            joined([0xFF, 0xD8], TestImage.jpeg()), Array(repeating: 0xFF, count: 10_000),
        ]
        let pngs: [[UInt8]] = [
            joined(signature, [0x7F, 0xFF, 0xFF, 0xFF], Array("IHDR".utf8), zeros),
            TestImage.png(PNGImage.chunk("IHDR", Array(zeros.prefix(13)))), TestImage.png(PNGImage.chunk("CgBI", [1])),
            joined(signature, PNGImage.chunk("IDAT", [1]), PNGImage.chunk("IEND", [])),
        ]
        var endless = TestImage.webp(picture)
        endless.replaceSubrange(4..<8, with: [0xFF, 0xFF, 0xFF, 0xFF])
        let webps: [[UInt8]] = [
            TestImage.webp([]), TestImage.webp([("EXIF", Array("Exif\0\0".utf8))]), TestImage.webp([("ANMF", [1])]),
            TestImage.webp([("VP8X", [1])] + picture), TestImage.webp(picture + [("VP8X", Array(zeros.prefix(10)))]),
            endless,
        ]
        let hostile = jpegs.map { (ImageType.jpeg, $0) } + pngs.map { (.png, $0) } + webps.map { (.webp, $0) }
        for (index, (type, bytes)) in hostile.enumerated() {
            #expect(throws: ImageMetadata.Malformed.self, "\(index)") {
                _ = try ImageMetadata.removed(from: bytes, type)
            }
        }
    }

    /// A directory that refers to itself, or is out of bounds, gives no orientation.
    @Test func orientationOutsideOfItsDataIsUpright() throws {
        for (offset, value) in [(4, 0xFF), (4, 0x7F), (7, 0xF0), (8, 0xFF)] as [(Int, UInt8)] {
            var exif = Self.exif(6)
            exif[offset] = value
            let photo = TestImage.jpeg(Self.segment(0xE1, "Exif\0\0", exif))
            #expect(try ImageMetadata.removed(from: photo, .jpeg).count <= photo.count)
        }
    }
}
