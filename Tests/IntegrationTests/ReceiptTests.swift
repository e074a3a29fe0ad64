import Foundation
import TestSupport
import Testing

@testable import InspectionWorker

/// The receipts of `examples/inspections/swift`.
@Suite(.ownThreads) struct ReceiptTests {
    /// A picture of one pixel.
    private static let png = Data(
        base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9aw"
            + "AAAABJRU5ErkJggg==")
    /// The head of a JPEG image of 16 × 16 pixels: libharu reads no more.
    private static let jpeg: [UInt8] =
        [0xFF, 0xD8, 0xFF, 0xE0, 0, 16] + Array("JFIF".utf8) + [0, 1, 1, 0, 0, 1, 0, 1, 0, 0]
        + [0xFF, 0xC0, 0, 17, 8, 0, 16, 0, 16, 3, 1, 0x11, 0, 2, 0x11, 1, 3, 0x11, 1, 0xFF, 0xD9]

    private func receipt(_ photos: [[UInt8]], answers: [String: String] = ["Dry?": "yes"]) throws -> String {
        let inspection = Inspection(plannedAt: "2026-11-28T09:00:00Z", answers: answers, photos: nil)
        return String(decoding: try inspection.receipt(photos: photos), as: Unicode.ASCII.self)
    }

    @Test func photosAreEmbedded() throws {
        let pdf = try receipt([Array(try #require(Self.png)), Self.jpeg])
        #expect(pdf.hasPrefix("%PDF-") && pdf.contains("%%EOF"))
        #expect(pdf.components(separatedBy: "/Subtype /Image").count == 3)
        #expect(pdf.contains("/DCTDecode") && pdf.contains("(Inspection of 2026-11-28)"))
    }

    @Test func longTextsContinueOnFurtherPages() throws {
        let answers = [
            "Ünïcode 🪢 \u{1}?": String(repeating: "word ", count: 4_000) + String(repeating: "x", count: 3_000)
        ]
        // About 290 lines, of which a page has 46.
        let pages = try #require(try receipt([], answers: answers).firstMatch(of: /\/Count ([0-9]+)/))
        #expect(6...7 ~= Int(pages.1) ?? 0, "\(pages.0)")
    }

    @Test func damagedPhotoHasAReason() throws {
        let png = Array(try #require(Self.png))
        var damaged = png
        damaged[45] ^= 0xFF
        let unreadable: [[UInt8]] = [
            damaged, Array(png.prefix(50)), Array(png.prefix(8)), [0xFF, 0xD8, 0xFF, 0xE0, 0xFF, 0xFF, 1],
            Array(Self.jpeg.prefix(25)),
        ]
        for photo in unreadable {
            #expect(throws: Unprintable("Photo 2 cannot be read.")) { try receipt([png, photo]) }
        }
        var large = png
        large.replaceSubrange(16..<24, with: [0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10])
        #expect(throws: Unprintable("Photo 1 cannot be read.")) { try receipt([large]) }
        #expect(throws: Unprintable("Photo 1 is neither a JPEG nor a PNG image.")) { try receipt([Array("RIFF".utf8)]) }
    }

    @Test func largeReceiptHasAReason() {
        let photo = Self.jpeg + [UInt8](repeating: 0, count: 1 << 20)
        #expect(throws: Unprintable("The receipt is larger than 1 MiB: use fewer or smaller photos.")) {
            try receipt([photo])
        }
    }
}
