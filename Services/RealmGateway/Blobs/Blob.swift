import Access
import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import Model

/// An uploaded image without its metadata, or an uploaded document, as it is stored.
struct Blob: Sendable {
    /// Maximum size in bytes, as sent and as stored. The listener's `HTTPLimits.bodyBytesMax` must not be lower.
    static let bytesMax = 1 << 20

    let id: UUID
    let type: BlobType
    /// SHA-256 of the bytes.
    let digest: [UInt8]
    /// SHA-256 of the bytes that were sent. For an image that an earlier release stored, it equals the digest.
    let sentDigest: [UInt8]
    let bytes: [UInt8]

    /// - Throws: `Problem` if the bytes have no supported format.
    init(_ id: UUID, sent: [UInt8]) throws(Problem) {
        guard let type = BlobType(of: sent) else {
            throw ImageType.isHEIF(sent) ? Problems.imageHEIF : Problems.imageUnsupported
        }
        let bytes: [UInt8]
        switch type {
        case .image(let image):
            guard let stripped = try? ImageMetadata.removed(from: sent, image), stripped.count <= Self.bytesMax else {
                throw Problems.imageMalformed
            }
            bytes = stripped
        case .pdf:
            guard BlobType.isWholePDF(sent) else { throw Problems.documentMalformed }
            bytes = sent
        }
        self.id = id
        self.type = type
        self.bytes = bytes
        digest = Array(SHA256.hash(data: bytes))
        sentDigest = Array(SHA256.hash(data: sent))
    }
}

/// The outcome of an upload.
enum BlobAddition: Equatable, Sendable {
    /// The blob was stored.
    case added
    /// A blob with this id and these bytes existed.
    case exists
    /// A blob with this id has other bytes.
    case conflict
    /// No blob has this id, but an object already refers to it.
    case referenced
    /// The caller has too many blobs that no object refers to.
    case limitReached
}

/// The metadata of a stored blob.
struct StoredBlob: Equatable, Sendable {
    let type: BlobType
    /// SHA-256 of the bytes.
    let digest: [UInt8]
    /// As ``Caller/id``.
    let uploader: Int32
    /// Whether any object refers to it.
    let isReferenced: Bool
    /// The realms of the objects that refer to it.
    let realms: [RealmPath]

    /// Returns whether the caller may read it: they may read a realm with an object that refers to it or, while no
    /// object does, they uploaded it.
    func mayBeRead(by caller: Caller, _ access: AccessState) -> Bool {
        isReferenced ? realms.contains(where: access.mayRead) : uploader == caller.id
    }

    /// The entity tag, derived from the bytes.
    var tag: String { EntityTag.text(digest) }
}
