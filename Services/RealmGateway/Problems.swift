import Access
import HTTPServer
import HTTPTypes

/// The problem responses of the device API; `deploy/openapi.yaml` lists their types.
enum Problems {
    static let tokenMissing = Problem(
        .unauthorized, name: "token-missing", detail: "The request needs a bearer token.",
        headers: [.wwwAuthenticate: "Bearer"])

    static let keyUnknown = Problem(
        .unauthorized, name: "invalid-token", detail: "The key is unknown or was revoked.",
        headers: [
            .wwwAuthenticate: "Bearer error=\"invalid_token\", error_description=\"The key is unknown or was revoked\""
        ])

    /// A moved environment, for clients that only understand 401.
    static let tokenOfMovedEnvironment = Problem(
        .unauthorized, name: "environment-moved",
        detail: "The organisation has moved. Other routes return the new address with status 421.",
        headers: [.wwwAuthenticate: "Bearer"])

    static let boundElsewhere = Problem(
        .forbidden, name: "identity-bound-elsewhere",
        detail: "This e-mail address is bound to another account of the identity provider.")

    static let notAMember = Problem(
        .forbidden, name: "not-a-member", detail: "This e-mail address does not belong to the organisation.")

    static let emailUnusable = Problem(
        .forbidden, name: "email-unusable", detail: "This e-mail address cannot name a realm.")

    static let integrationOnly = Problem(
        .forbidden, name: "integration-only",
        detail: """
            'all' is for integrations. A device gets its person's realms without naming them, and may name others in \
            'realms'.
            """)

    static let personOnly = Problem(
        .forbidden, name: "person-only",
        detail: "Only a person has a login of their own; an integration cannot use this path.")

    static let credentialsUnavailable = Problem(
        .serviceUnavailable, name: "credentials-unavailable",
        detail: "The server has no key to encrypt secrets with. Notify its operator.", headers: [.retryAfter: "60"])

    static func refused(_ refusal: BindingRefusal) -> Problem {
        switch refusal {
        case .boundElsewhere: boundElsewhere
        case .notAMember: notAMember
        case .emailUnusable: emailUnusable
        }
    }

    static func malformed(_ detail: String) -> Problem {
        Problem(.badRequest, name: "malformed-request", detail: detail)
    }

    static func sequenceGap(expected: Int64) -> Problem {
        Problem(
            .conflict, name: "sequence-gap",
            detail: "A mutation is missing, and nothing was applied. Continue with sequence \(expected).",
            extensions: ["expectedSequence": .integer(Int(expected))])
    }

    static let imageUnsupported = Problem(
        .unsupportedMediaType, name: "image-unsupported",
        detail: "The body is not a JPEG, PNG or WebP image or a PDF document.")

    static let imageHEIF = Problem(
        .unsupportedMediaType, name: "image-heif",
        detail: "HEIC, HEIF and AVIF images are not supported. Convert the image to JPEG, PNG or WebP and send that.")

    static let imageMalformed = Problem(
        .unprocessableContent, name: "image-malformed",
        detail: "The image is incomplete or damaged: its metadata cannot be removed. Encode it again and send that.")

    static let documentMalformed = Problem(
        .unprocessableContent, name: "document-malformed",
        detail: "The PDF document is incomplete: its end is missing. Send the whole document.")

    /// For an image that an earlier release stored.
    static let imageUnreadable = Problem(
        .gone, name: "image-unreadable",
        detail: """
            The stored image is damaged: its metadata cannot be removed, so it is not served. Send the image again \
            under another id.
            """)

    static let outlineUnknown = Problem(
        .notFound, name: "outline-unknown", detail: "The environment has no outline of the map.")

    static let blobUnknown = Problem(
        .notFound, name: "blob-unknown", detail: "There is no such blob, or no object that you may read refers to it.")

    static let blobTaken = Problem(
        .conflict, name: "blob-taken",
        detail: "A blob with this id has other bytes, and blobs cannot change. Use a new id.")

    static let blobReferenced = Problem(
        .conflict, name: "blob-referenced",
        detail: "An object already refers to this id. Use a new id, and send the blob before the object.")

    static let tooManyBlobs = Problem(
        .tooManyRequests, name: "too-many-blobs",
        detail: "No object refers to too many of your blobs. Reference them, or wait until they are removed.")

    static let busy = Problem(
        .serviceUnavailable, name: "busy",
        detail: "Too many requests are queued, or too many wrote the same objects. Retry.",
        headers: [.retryAfter: "1"])

    static let databaseUnavailable = Problem(
        .serviceUnavailable, name: "database-unavailable", detail: "The database is unavailable.",
        headers: [.retryAfter: "2"])
}
