import HTTPServer
import HTTPTypes

/// The problem responses of onboarding; `deploy/openapi.yaml` lists their types.
enum Problems {
    static let malformed = Problem(
        .badRequest, name: "malformed-request", detail: #"The body must be {"email": "ana@example.com"}."#)

    static let emailUnusable = Problem(
        .badRequest, name: "email-unusable", detail: "The e-mail address is not valid or not supported.")

    static let organisationUnknown = Problem(
        .notFound, name: "organisation-unknown", detail: "No organisation is configured for this e-mail address.")

    static let personUnknown = Problem(
        .notFound, name: "person-unknown", detail: "The organisation has no person with this e-mail address.")

    static let sessionUnknown = Problem(
        .notFound, name: "session-unknown", detail: "The session does not exist or has expired.")

    static let upgradeNeeded = Problem(
        .upgradeRequired, name: "websocket-only", detail: "A session must be opened as a WebSocket (RFC 6455).",
        headers: [.upgrade: "websocket"])

    static let credentialMissing = Problem(
        .badRequest, name: "malformed-request", detail: #"The body must be {"credential": "…"}."#)

    /// The device cannot continue without its person's login.
    static func loginNeeded(_ reason: LoginReason) -> Problem {
        Problem(
            .unauthorized, name: "login-required", detail: reason.detail,
            extensions: ["reason": .text(reason.rawValue)],
            headers: [.wwwAuthenticate: "Bearer error=\"invalid_token\""])
    }

    static func renewalInProgress(seconds: Int) -> Problem {
        Problem(
            .serviceUnavailable, name: "renewal-in-progress",
            detail: "Another request is renewing this device's token, or was interrupted.",
            headers: [.retryAfter: String(min(5, max(1, seconds)))])
    }

    static let tooMany = Problem(
        .tooManyRequests, name: "too-many-requests", detail: "Too many requests; retry in one minute.",
        headers: [.retryAfter: "60"])

    static let providerUnavailable = Problem(
        .serviceUnavailable, name: "identity-provider-unavailable",
        detail: "The organisation's identity provider is unavailable.", headers: [.retryAfter: "5"])

    static let loginNotConfigured = Problem(
        .serviceUnavailable, name: "login-not-configured",
        detail: "The organisation has no login configured; contact its administrator.", headers: [.retryAfter: "300"])

    static let databaseUnavailable = Problem(
        .serviceUnavailable, name: "database-unavailable", detail: "The database is unavailable.",
        headers: [.retryAfter: "2"])
}
