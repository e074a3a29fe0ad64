import Access
import HTTPServer
import HTTPTypes
import Identity

/// The problems the device API answers with; `deploy/openapi.yaml` lists their types.
enum Problems {
    static let tokenMissing = Problem(
        .unauthorized, name: "token-missing", detail: "The request needs a bearer token.",
        headers: [.wwwAuthenticate: "Bearer"])

    static let keyUnknown = Problem(
        .unauthorized, name: "invalid-token", detail: "The key is not valid here.",
        headers: [.wwwAuthenticate: "Bearer error=\"invalid_token\", error_description=\"The key is not valid here\""])

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
            'all' is for integrations. A device gets the realms that its person has to do with without naming them, \
            and may name others in 'realms'.
            """)

    static let personOnly = Problem(
        .forbidden, name: "person-only", detail: "This is for people: an integration has no login of its own.")

    static let credentialsUnavailable = Problem(
        .serviceUnavailable, name: "credentials-unavailable",
        detail: "The server cannot keep secrets at the moment: it has no key for them.", headers: [.retryAfter: "60"])

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
            detail: "A mutation is missing: nothing was applied. Go on from \(expected).",
            extensions: ["expectedSequence": .integer(Int(expected))])
    }

    static let imageUnknown = Problem(
        .unsupportedMediaType, name: "image-unknown", detail: "The body is no JPEG, PNG or WebP image.")

    static let imageHEIF = Problem(
        .unsupportedMediaType, name: "image-heif",
        detail: "HEIC, HEIF and AVIF images are not supported. Convert the image to JPEG, PNG or WebP and send that.")

    static let imageMalformed = Problem(
        .unprocessableContent, name: "image-malformed",
        detail: "The image is incomplete or damaged: its metadata cannot be removed. Encode it again and send that.")

    /// Of an image that an earlier release stored.
    static let imageUnreadable = Problem(
        .gone, name: "image-unreadable",
        detail: """
            The stored image is damaged: its metadata cannot be removed, so it is not served. Send the image again \
            under another id.
            """)

    static let blobUnknown = Problem(
        .notFound, name: "blob-unknown", detail: "There is no such blob, or nothing that you may open names it.")

    static let blobTaken = Problem(
        .conflict, name: "blob-taken", detail: "There is a blob with this id and other bytes. A blob never changes.")

    static let blobNamed = Problem(
        .conflict, name: "blob-named",
        detail: "An object names this id already. Send a blob before an object names it, under an id of its own.")

    static let blobsUnnamed = Problem(
        .tooManyRequests, name: "too-many-blobs",
        detail: "Too many of your blobs are named by nothing. Name them, or wait until they are removed.")

    static let busy = Problem(
        .serviceUnavailable, name: "busy", detail: "Too many requests are waiting; try again.",
        headers: [.retryAfter: "1"])

    static let databaseUnavailable = Problem(
        .serviceUnavailable, name: "database-unavailable", detail: "The database does not answer at the moment.",
        headers: [.retryAfter: "2"])
}
