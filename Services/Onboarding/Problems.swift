import HTTPServer
import HTTPTypes

/// The problems onboarding answers with; `deploy/openapi.yaml` lists their types.
enum Problems {
    static let malformed = Problem(
        .badRequest, name: "malformed-request", detail: #"The body must be {"email": "ana@example.com"}."#)

    static let emailUnusable = Problem(
        .badRequest, name: "email-unusable", detail: "This is not an e-mail address that can be used here.")

    static let organisationUnknown = Problem(
        .notFound, name: "organisation-unknown", detail: "No organisation here has this e-mail address.")

    static let personUnknown = Problem(
        .notFound, name: "person-unknown", detail: "The organisation does not know this e-mail address.")

    static let sessionUnknown = Problem(
        .notFound, name: "session-unknown", detail: "There is no such session, or it has expired.")

    static let upgradeNeeded = Problem(
        .upgradeRequired, name: "websocket-only", detail: "A session is opened as a WebSocket (RFC 6455).",
        headers: [.upgrade: "websocket"])

    static let credentialMissing = Problem(
        .badRequest, name: "malformed-request", detail: #"The body must be {"credential": "…"}."#)

    /// Only the person's login helps.
    static func loginNeeded(_ reason: LoginReason) -> Problem {
        Problem(
            .unauthorized, name: "login-needed", detail: reason.detail,
            extensions: ["reason": .text(reason.rawValue)],
            headers: [.wwwAuthenticate: "Bearer error=\"invalid_token\""])
    }

    static func renewalUnderWay(seconds: Int) -> Problem {
        Problem(
            .serviceUnavailable, name: "renewal-under-way",
            detail: "Another request renews this device's token, or did not come to its end.",
            headers: [.retryAfter: String(min(5, max(1, seconds)))])
    }

    static let tooMany = Problem(
        .tooManyRequests, name: "too-many-requests", detail: "Too many requests; try again in a minute.",
        headers: [.retryAfter: "60"])

    static let providerUnavailable = Problem(
        .serviceUnavailable, name: "identity-provider-unavailable",
        detail: "The organisation's identity provider does not answer at the moment.", headers: [.retryAfter: "5"])

    static let loginNotSetUp = Problem(
        .serviceUnavailable, name: "login-not-set-up",
        detail: "The organisation has no login set up; its administrator can do that.", headers: [.retryAfter: "300"])

    static let databaseUnavailable = Problem(
        .serviceUnavailable, name: "database-unavailable", detail: "The database does not answer at the moment.",
        headers: [.retryAfter: "2"])
}
