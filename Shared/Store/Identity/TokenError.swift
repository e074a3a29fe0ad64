import Essentials
package import HTTPServer
import HTTPTypes

/// The reason why a bearer token was rejected.
package enum TokenError: Error, Equatable, CustomStringConvertible {
    case malformed(String)
    case algorithmRefused(String)
    case keyUnknown
    case signatureWrong
    case expired
    case notYetValid
    case issuerUnknown
    case audienceWrong
    case emailMissing
    case emailUnverified(UnverifiedAddressReason)
    /// The provider's keys, or its newest key, could not be read: the token's validity is undetermined.
    case keysUnavailable(String)

    /// Whether the token is authentic, but lacks a verified address.
    package var concernsAddress: Bool {
        switch self {
        case .emailMissing, .emailUnverified: true
        case .malformed, .algorithmRefused, .keyUnknown, .signatureWrong, .expired, .notYetValid, .issuerUnknown,
            .audienceWrong, .keysUnavailable:
            false
        }
    }

    /// For the log: more detailed than the response to the client, but never contains the token.
    package var description: String {
        switch self {
        case .malformed(let reason): "malformed token: \(reason)"
        case .algorithmRefused(let name): "token algorithm not allowed: \(name.prefix(scalars: 16))"
        case .keyUnknown: "token signed with a key its issuer does not publish"
        case .signatureWrong: "token signature does not match"
        case .expired: "token expired"
        case .notYetValid: "token not yet valid"
        case .issuerUnknown: "token of an issuer that no environment accepts"
        case .audienceWrong: "token for another audience"
        case .emailMissing: "token without an e-mail address"
        case .emailUnverified(let reason): "e-mail address in the token is not verified: \(reason)"
        case .keysUnavailable(let reason): "the issuer's keys are unavailable: \(reason)"
        }
    }

    /// The response to the client: 401 with `WWW-Authenticate` (RFC 6750 §3), whose text is ASCII without quotes.
    package var problem: Problem {
        if case .keysUnavailable = self {
            return Problem(
                .serviceUnavailable, name: "identity-provider-unavailable",
                detail: "The identity provider's keys are unavailable; retry later.", headers: [.retryAfter: "5"])
        }
        return Problem(
            .unauthorized, name: "invalid-token", detail: "The \(clientText).",
            headers: [.wwwAuthenticate: "Bearer error=\"invalid_token\", error_description=\"The \(clientText)\""])
    }

    private var clientText: String {
        switch self {
        case .malformed, .algorithmRefused, .keyUnknown, .signatureWrong, .issuerUnknown, .keysUnavailable:
            "token is not valid here"
        case .expired: "token expired"
        case .notYetValid: "token is not valid yet"
        case .audienceWrong: "token is meant for another audience"
        case .emailMissing: "token has no e-mail address"
        case .emailUnverified: "e-mail address in the token is not verified"
        }
    }
}
