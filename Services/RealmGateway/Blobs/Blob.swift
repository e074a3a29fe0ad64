import Access
import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import Model

/// An image without its metadata, as it is stored.
struct Blob: Sendable {
    /// The longest one, in bytes, as it is sent and as it is stored.
    static let bytesMax = 1 << 20

    let id: UUID
    let type: ImageType
    /// SHA-256 of the bytes.
    let digest: [UInt8]
    /// SHA-256 of the bytes that were sent, which is the digest of an image that an earlier release stored.
    let sentDigest: [UInt8]
    let bytes: [UInt8]

    /// - Throws: A problem when the bytes are not an image of a supported format.
    init(_ id: UUID, sent: [UInt8]) throws(Problem) {
        guard let type = ImageType(of: sent) else {
            throw ImageType.isHEIF(sent) ? Problems.imageHEIF : Problems.imageUnknown
        }
        guard let bytes = try? ImageMetadata.removed(from: sent, type), bytes.count <= Self.bytesMax else {
            throw Problems.imageMalformed
        }
        self.id = id
        self.type = type
        self.bytes = bytes
        digest = Array(SHA256.hash(data: bytes))
        sentDigest = Array(SHA256.hash(data: sent))
    }
}

/// What came of sending a blob.
enum BlobAddition: Equatable, Sendable {
    /// It is kept.
    case added
    /// It was there already, with these bytes.
    case there
    /// There is one with other bytes.
    case taken
    /// There is none, but an object names it already.
    case named
    /// Too many of the caller's blobs are named by nothing.
    case tooMany
}

/// What is known of a blob that is kept.
struct StoredBlob: Equatable, Sendable {
    let type: ImageType
    /// SHA-256 of the bytes.
    let digest: [UInt8]
    /// As ``Caller/id``.
    let uploader: Int32
    /// Whether any object names it.
    let isNamed: Bool
    /// The realms of the objects that name it.
    let realms: [RealmPath]

    /// Whether somebody may read it: an object that names it is in a realm that they may open; or, while nothing
    /// names it yet, it is what they have sent.
    func mayBeRead(by caller: Caller, _ access: AccessState) -> Bool {
        isNamed ? realms.contains(where: access.mayRead) : uploader == caller.id
    }

    /// An entity tag (RFC 9110 §8.8.3): other bytes have another one.
    var tag: String { Self.tag(digest) }

    static func tag(_ digest: [UInt8]) -> String { "\"\(Base64URL.text(digest))\"" }
}

/// Where blobs are kept. One that keeps the bytes elsewhere still asks PostgreSQL who sent them and what names them.
///
/// Its functions throw what the database does (`PostgresError`).
protocol BlobStore: Sendable {
    /// Keeps a blob; it is durable when this returns. To send it again is harmless, at any time.
    func add(_ blob: Blob, by caller: Caller) async throws -> BlobAddition

    /// - Returns: `nil` when there is none of this id in the caller's environment.
    func find(_ id: UUID, for caller: Caller) async throws -> StoredBlob?

    /// - Returns: `nil` when there is none: it may have been removed since it was found.
    func bytes(of id: UUID, in environment: EnvironmentID) async throws -> [UInt8]?
}
