import Essentials
package import HTTPServer
import HTTPTypes

/// Why a bearer token was not accepted.
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
    case emailUnverified(UnvouchedAddress)
    /// The provider's keys, or its newest, could not be read: nothing is known about the token.
    case keysUnavailable(String)

    /// Whether the token is its issuer's own, and lacks an address that is vouched for.
    package var isOfAddress: Bool {
        switch self {
        case .emailMissing, .emailUnverified: true
        case .malformed, .algorithmRefused, .keyUnknown, .signatureWrong, .expired, .notYetValid, .issuerUnknown,
            .audienceWrong, .keysUnavailable:
            false
        }
    }

    /// For the log. It may say more than the client is told, but never holds the token.
    package var description: String {
        switch self {
        case .malformed(let reason): "malformed token: \(reason)"
        case .algorithmRefused(let name): "token algorithm refused: \(name.prefix(scalars: 16))"
        case .keyUnknown: "token signed with a key its issuer does not publish"
        case .signatureWrong: "token signature does not match"
        case .expired: "token expired"
        case .notYetValid: "token not yet valid"
        case .issuerUnknown: "token of an unknown issuer"
        case .audienceWrong: "token for another audience"
        case .emailMissing: "token without an e-mail address"
        case .emailUnverified(let reason): "nobody vouches for the e-mail address: \(reason)"
        case .keysUnavailable(let reason): "keys of the issuer are unavailable: \(reason)"
        }
    }

    /// What the client is told. RFC 6750 §3: 401 with `WWW-Authenticate`, whose text is ASCII without quotes.
    package var problem: Problem {
        if case .keysUnavailable = self {
            return Problem(
                .serviceUnavailable, name: "identity-provider-unavailable",
                detail: "The identity provider's keys cannot be read at the moment.", headers: [.retryAfter: "5"])
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
