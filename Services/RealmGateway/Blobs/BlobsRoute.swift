import Access
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import NIOCore
import Postgres

/// `PUT` and `GET /v1/blobs/{id}`.
struct BlobsRoute: Sendable {
    let authentication: Authentication
    let pool: Pool
    let numbers: RealmNumbers
    let store: BlobStore

    @concurrent func put(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let login = try await authentication.login(request, context)
        let id = try Self.id(context)
        let bytes = try await BoundedBytes.read(request, bytesMax: Blob.bytesMax)
        let blob = try Blob(id, sent: bytes)
        _ = try await access(of: login.caller)
        let addition = try await mappingStoreErrors { try await store.add(blob, by: login.caller) }
        switch addition {
        case .added: return Self.response(.created, tag: EntityTag.text(blob.digest))
        case .exists: return Self.response(.noContent, tag: EntityTag.text(blob.digest))
        case .conflict: throw Problems.blobTaken
        case .referenced: throw Problems.blobReferenced
        case .limitReached: throw Problems.tooManyBlobs
        }
    }

    @concurrent func get(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let caller = try await authentication.login(request, context).caller
        let id = try Self.id(context)
        // A blob that the caller may not read gets the same response as a missing one.
        guard let blob = try await mappingStoreErrors({ try await store.find(id, for: caller) }),
            blob.mayBeRead(by: caller, try await access(of: caller, to: blob.realms))
        else { throw Problems.blobUnknown }
        if request.holds(blob.tag) {
            return Self.response(.notModified, tag: blob.tag, [.cacheControl: Self.caching])
        }
        let environment = caller.environment
        guard let stored = try await mappingStoreErrors({ try await store.bytes(of: id, in: environment) }) else {
            throw Problems.blobUnknown
        }
        var headers: HTTPFields = [
            .cacheControl: Self.caching, .contentType: blob.type.mediaType, .xContentTypeOptions: "nosniff",
        ]
        // A document may have scripts: a browser must not display it in the gateway's origin.
        if blob.type == .pdf { headers[.contentDisposition] = "attachment" }
        let bytes = try Self.served(stored, blob.type)
        return Self.response(.ok, tag: blob.tag, headers, ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// Returns the bytes without metadata: an earlier release stored images with it, and damaged ones too.
    private static func served(_ stored: [UInt8], _ type: BlobType) throws(Problem) -> [UInt8] {
        guard case .image(let image) = type else { return stored }
        guard let bytes = try? ImageMetadata.removed(from: stored, image, mayBeDamaged: true) else {
            throw Problems.imageUnreadable
        }
        return bytes
    }

    /// A blob never changes, and only the permitted caller may cache it (RFC 8246).
    private static let caching = "private, max-age=31536000, immutable"

    private static func id(_ context: EdgeContext) throws -> UUID {
        guard let text = context.parameters.get("id"), let id = UUID(ascii: text) else {
            throw Problems.malformed("The blob's id is not a UUID.")
        }
        return id
    }

    private static func response(
        _ status: HTTPResponse.Status, tag: String, _ more: HTTPFields = [:], _ body: ResponseBody = ResponseBody()
    ) -> Response {
        var headers = more
        headers[.eTag] = tag
        return Response(status: status, headers: headers, body: body)
    }

    /// Loads the caller's permissions.
    ///
    /// - Parameter named: The realms to check.
    /// - Throws: ``Problems/keyUnknown`` for a removed integration.
    private func access(of caller: Caller, to named: [RealmPath] = []) async throws -> AccessState {
        try await mappingDatabaseErrors {
            try await pool.run { [numbers] connection in
                let state = try AccessReader(caller, named: named, numbers, on: &connection).read(on: &connection)
                guard !state.isRemoved else { throw Problems.keyUnknown }
                return state
            }
        }
    }

    /// Runs `body`, as ``mappingDatabaseErrors(_:)`` does. Until `fieldpost migrate --finish`, the table of blobs does
    /// not exist.
    private func mappingStoreErrors<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
        do {
            return try await mappingDatabaseErrors(body)
        } catch let error as PostgresError where error.isMissingTable {
            throw Problems.databaseUnavailable
        }
    }
}
