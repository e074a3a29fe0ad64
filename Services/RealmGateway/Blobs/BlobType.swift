/// The format of a blob, detected by its first bytes. Headers and names are ignored.
enum BlobType: Equatable, Sendable {
    case image(ImageType)
    /// A document. It is stored as it was sent.
    case pdf

    /// - Returns: `nil` for any other format.
    init?(of bytes: [UInt8]) {
        if let type = ImageType(of: bytes) {
            self = .image(type)
        } else if bytes.starts(with: "%PDF-".utf8) {
            self = .pdf
        } else {
            return nil
        }
    }

    /// - Returns: `nil` for a media type that no blob has.
    init?(mediaType: String) {
        if let type = ImageType(rawValue: mediaType) {
            self = .image(type)
        } else if mediaType == Self.pdf.mediaType {
            self = .pdf
        } else {
            return nil
        }
    }

    /// The media type, as in `Content-Type` and in the database.
    var mediaType: String {
        switch self {
        case .image(let type): type.rawValue
        case .pdf: "application/pdf"
        }
    }

    /// Returns whether the bytes have the end of a PDF document, so that they are not the beginning of one.
    ///
    /// Source: ISO 32000-1 §7.5.5 and annex H, implementation note 18: `%%EOF` is within the last 1,024 bytes.
    static func isWholePDF(_ bytes: [UInt8]) -> Bool {
        let (end, mark) = (bytes.suffix(1_024), Array("%%EOF".utf8))
        return end.indices.contains { end[$0...].starts(with: mark) }
    }
}
