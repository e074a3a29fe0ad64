import Essentials
import FoundationEssentials

/// An event that a session sends to its device.
enum DeviceEvent: Sendable {
    /// The token for the device API; with a credential for renewal if the provider issued a refresh token.
    case token(access: String, expires: Int64, credential: DeviceCredential?)
    case realmInitialized(path: String)
    case dataReady
    /// A failure; with a URL if another login attempt is possible.
    case error(LoginProblem, retryURL: String?)

    var name: String {
        switch self {
        case .token: "token"
        case .realmInitialized: "realm initialized"
        case .dataReady: "data ready"
        case .error: "error"
        }
    }

    /// Encodes the payload as JSON.
    func payload() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let value =
            switch self {
            case .token(let access, let expires, let credential):
                Payload(
                    access_token: access, token_type: "Bearer",
                    expires_at: Timestamp(millisecondsSinceEpoch: expires * 1_000).description,
                    credential: credential?.text, device_id: credential?.deviceID)
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
        var device_id: String?
        var path: String?
        var code: String?
        var message: String?
        var login_url: String?
    }
}

/// The reason why a login failed.
enum LoginProblem: Error, Equatable, Sendable {
    case consentRefused
    /// The outcome is unknown: the service stopped during the login.
    case interrupted
    /// An error code from the provider.
    case providerError(String)
    case providerUnavailable
    /// The provider's tokens were rejected; the reason is for the log.
    case tokenRefused(String)
    /// The person logged in with another account.
    case otherAddress
    /// The address in the token is not verified; the reason is for the log.
    case emailUnverified(String)
    case boundElsewhere
    /// The person did not confirm the device.
    case notConfirmed
    /// The back end does not list the person: no realm will be created.
    case personUnknown

    /// The code for programs.
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

    /// The message for people. Contains no external input.
    var message: String {
        switch self {
        case .consentRefused: "Access was denied on the login page."
        case .interrupted: "The login was interrupted."
        case .providerError: "Your organisation's identity provider reported an error."
        case .providerUnavailable: "Your organisation's identity provider is unavailable at the moment."
        case .tokenRefused: "The response of your organisation's identity provider is not valid."
        case .otherAddress: "You logged in with a different e-mail address than the one you entered on your device."
        case .emailUnverified:
            "Your organisation's identity provider does not verify this e-mail address. Please contact its "
                + "administrator."
        case .boundElsewhere: "This e-mail address is bound to another account of your organisation."
        case .notConfirmed: "The login was not confirmed."
        case .personUnknown: "You are not registered in your organisation's time registration system."
        }
    }

    /// Whether another attempt in the same session may succeed.
    var mayRetry: Bool {
        switch self {
        case .consentRefused, .interrupted, .providerError, .providerUnavailable, .tokenRefused, .otherAddress,
            .emailUnverified:
            true
        case .boundElsewhere, .notConfirmed, .personUnknown: false
        }
    }
}
