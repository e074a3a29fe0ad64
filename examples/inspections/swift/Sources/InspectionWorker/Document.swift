import CPDF
import Foundation

/// A PDF document with texts and photos, one below the other on pages of A4. It wraps libharu.
///
/// libharu records its first error, and ignores later calls: ``bytes()`` and ``draw(_:number:)`` check it.
final class Document {
    enum Style: String {
        case regular = "Helvetica"
        case bold = "Helvetica-Bold"
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let pdf = HPDF_New(nil, nil)
    private var page: HPDF_Page?
    /// The lower edge of what is drawn on the page, in points from its bottom.
    private var y: Float = 0

    private static let (margin, width, height): (Float, Float, Float) = (60, 475, 842)
    private static let photoMax: (width: Float, height: Float) = (440, 300)
    /// Of a PNG photo, because it is decoded in memory.
    private static let pixelsMax = 20_000_000

    init(title: String) {
        HPDF_SetCompressionMode(pdf, HPDF_UINT(HPDF_COMP_ALL))
        HPDF_SetInfoAttr(pdf, HPDF_INFO_TITLE, Self.bytes(of: title))
    }

    deinit { HPDF_Free(pdf) }

    /// Writes a text in lines. Characters outside of Windows-1252 become question marks: the fonts of PDF lack them.
    func write(_ text: String, _ style: Style, size: Float = 11) {
        let font = HPDF_GetFont(pdf, style.rawValue, "WinAnsiEncoding")
        for paragraph in text.split(whereSeparator: \.isNewline) {
            var rest = Self.bytes(of: String(paragraph))[...]
            while rest.count > 1 {
                reserve(size * 1.4)
                HPDF_Page_SetFontAndSize(page, font, size)
                // libharu rejects longer texts.
                var line = Array(rest.prefix(1_000)) + [0]
                let fitting = [HPDF_TRUE, HPDF_FALSE].lazy.map { wrapsWords in
                    Int(HPDF_Page_MeasureText(self.page, line, Self.width, HPDF_BOOL(wrapsWords), nil))
                }
                let count = max(1, fitting.first { $0 > 0 } ?? 1)
                line = Array(line.prefix(count)) + [0]
                rest = rest.dropFirst(count)
                HPDF_Page_BeginText(page)
                HPDF_Page_TextOut(page, Self.margin, y, line)
                HPDF_Page_EndText(page)
            }
        }
    }

    /// Draws a photo, of its proportions.
    ///
    /// - Throws: ``Unprintable`` if the photo is damaged, or neither JPEG nor PNG.
    func draw(_ photo: [UInt8], number: Int) throws {
        try check()
        let image: HPDF_Image?
        if photo.starts(with: [0xFF, 0xD8]) {
            image = HPDF_LoadJpegImageFromMem(pdf, photo, HPDF_UINT(photo.count))
        } else if photo.starts(with: [0x89, 0x50, 0x4E, 0x47]) {
            let (pixels, width, height) = try Self.decoded(photo, number)
            image = HPDF_LoadRawImageFromMem(pdf, pixels, width, height, HPDF_CS_DEVICE_RGB, 8)
        } else {
            throw Unprintable("Photo \(number) is neither a JPEG nor a PNG image.")
        }
        guard let image, HPDF_GetError(pdf) == 0 else { throw Unprintable("Photo \(number) cannot be read.") }
        let (width, height) = (Float(HPDF_Image_GetWidth(image)), Float(HPDF_Image_GetHeight(image)))
        guard width > 0, height > 0 else { throw Unprintable("Photo \(number) cannot be read.") }
        let scale = min(Self.photoMax.width / width, Self.photoMax.height / height)
        reserve(height * scale + 12)
        HPDF_Page_DrawImage(page, image, Self.margin, y, width * scale, height * scale)
    }

    /// Returns the document.
    func bytes() throws -> [UInt8] {
        HPDF_SaveToStream(pdf)
        try check()
        var count = HPDF_GetStreamSize(pdf)
        return try [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, used in
            HPDF_ReadFromStream(pdf, buffer.baseAddress, &count)
            used = Int(count)
            try check()
        }
    }

    private func check() throws {
        let error = HPDF_GetError(pdf)
        guard error == 0 else { throw Failure(description: "libharu: error 0x\(String(error, radix: 16))") }
    }

    /// Moves down by a height, on the next page if this one has no space.
    private func reserve(_ height: Float) {
        if page == nil || y - height < Self.margin {
            page = HPDF_AddPage(pdf)
            HPDF_Page_SetSize(page, HPDF_PAGE_SIZE_A4, HPDF_PAGE_PORTRAIT)
            y = Self.height - Self.margin
        }
        y -= height
    }

    /// Returns a text with a zero at its end.
    private static func bytes(of text: String) -> [CChar] {
        let text = String(text.map { $0.isASCII && !($0.asciiValue.map { $0 >= 32 } ?? false) ? " " : $0 })
        let data = text.data(using: .windowsCP1252, allowLossyConversion: true) ?? Data("?".utf8)
        return data.map { CChar(bitPattern: $0) } + [0]
    }

    /// Decodes a PNG photo to RGB on white.
    private static func decoded(
        _ photo: [UInt8], _ number: Int
    ) throws -> (pixels: [UInt8], width: UInt32, height: UInt32) {
        try photo.withUnsafeBufferPointer { photo in
            var image = png_image()
            image.version = png_uint_32(PNG_IMAGE_VERSION)
            defer { png_image_free(&image) }
            guard png_image_begin_read_from_memory(&image, photo.baseAddress, photo.count) != 0 else {
                throw Unprintable("Photo \(number) cannot be read.")
            }
            guard Int(image.width) * Int(image.height) <= pixelsMax else {
                throw Unprintable("Photo \(number) has more than \(pixelsMax) pixels.")
            }
            image.format = png_uint_32(PNG_FORMAT_FLAG_COLOR)
            var pixels = [UInt8](repeating: 0, count: 3 * Int(image.width) * Int(image.height))
            var white = png_color(red: 255, green: 255, blue: 255)
            guard png_image_finish_read(&image, &white, &pixels, 0, nil) != 0 else {
                throw Unprintable("Photo \(number) cannot be read.")
            }
            return (pixels, image.width, image.height)
        }
    }
}
