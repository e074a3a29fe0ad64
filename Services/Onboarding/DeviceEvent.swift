import Essentials
import FoundationEssentials
import Model

/// What a device is told.
enum DeviceEvent: Sendable {
    /// The token for the device API, and what it is renewed with where the provider gave a refresh token.
    case token(access: String, expires: Int64, credential: String?)
    case realmInitialized(path: String)
    case dataReady
    /// Something went wrong; with an address when the person may try again.
    case error(LoginProblem, retryURL: String?)

    var name: String {
        switch self {
        case .token: "token"
        case .realmInitialized: "realm initialized"
        case .dataReady: "data ready"
        case .error: "error"
        }
    }

    /// JSON.
    func payload() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let value =
            switch self {
            case .token(let access, let expires, let credential):
                Payload(
                    access_token: access, token_type: "Bearer",
                    expires_at: Timestamp(millisecondsSinceEpoch: expires * 1_000).description,
                    credential: credential)
            case .realmInitialized(let path): Payload(path: path)
            case .dataReady: Payload()
            case .error(let problem, let url):
                Payload(code: problem.code, message: problem.message, login_url: url)
            }
        return Array(try encoder.encode(value))
    }

    private struct Payload: Encodable {
        var access_token: String?
        var token_type: String?
        var expires_at: String?
        var credential: String?
        var path: String?
        var code: String?
        var message: String?
        var login_url: String?
    }
}

/// Why a login did not come to its end.
enum LoginProblem: Error, Equatable, Sendable {
    case consentRefused
    /// Nobody knows how it ended: the service was stopped in the middle of it.
    case interrupted
    /// The provider's own error code.
    case providerError(String)
    case providerUnavailable
    /// What the provider gave is not acceptable; the reason is for the log.
    case tokenRefused(String)
    /// The person logged in as somebody else.
    case otherAddress
    /// Nobody vouches for the address in the token; the reason is for the log.
    case emailUnverified(String)
    case boundElsewhere
    /// The person says that the device is not theirs.
    case notConfirmed
    /// The back end does not know the person: there will be no realm.
    case personUnknown

    /// For programs.
    var code: String {
        switch self {
        case .consentRefused: "consent-refused"
        case .interrupted: "interrupted"
        case .providerError: "provider-error"
        case .providerUnavailable: "provider-unavailable"
        case .tokenRefused: "token-refused"
        case .otherAddress: "other-address"
        case .emailUnverified: "email-unverified"
        case .boundElsewhere: "identity-bound-elsewhere"
        case .notConfirmed: "not-confirmed"
        case .personUnknown: "person-unknown"
        }
    }

    /// For people. It repeats nothing that came from outside.
    var message: String {
        switch self {
        case .consentRefused: "Access was refused at the login page."
        case .interrupted: "The login was interrupted."
        case .providerError: "The login page of your organisation reported an error."
        case .providerUnavailable: "The login of your organisation does not answer at the moment."
        case .tokenRefused: "The login of your organisation gave an answer that cannot be trusted."
        case .otherAddress: "You logged in with another e-mail address than the one you entered on your device."
        case .emailUnverified:
            "The login of your organisation does not say that this e-mail address is yours. Its administrator can help."
        case .boundElsewhere: "This e-mail address belongs to another account of your organisation."
        case .notConfirmed: "The login was not confirmed."
        case .personUnknown: "Your organisation's time registration does not know you."
        }
    }

    /// Whether another attempt in the same session may end better.
    var mayRetry: Bool {
        switch self {
        case .consentRefused, .interrupted, .providerError, .providerUnavailable, .tokenRefused, .otherAddress,
            .emailUnverified:
            true
        case .boundElsewhere, .notConfirmed, .personUnknown: false
        }
    }
}
