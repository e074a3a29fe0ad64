import Essentials
import Identity
import Model
import Tenants

/// Evaluates an identity provider's responses. Pure functions.
enum LoginRule {
    /// The outcome of the provider's redirect.
    enum RedirectOutcome: Equatable {
        case code(String)
        case problem(LoginProblem)
    }

    /// Parses the parameters of the redirect (RFC 6749 §4.1.2, RFC 9207).
    ///
    /// - Parameter namesIssuer: Whether the provider declares that its responses carry `iss`.
    static func redirectOutcome(_ fields: FormFields, issuer: String, namesIssuer: Bool) -> RedirectOutcome {
        switch AuthorizationResponse(fields, issuer: issuer, namesIssuer: namesIssuer) {
        case .code(let code): .code(code)
        case .otherIssuer(let given): .problem(.tokenRefused("iss is \(given?.excerpt ?? "missing")"))
        case .noCode: .problem(.tokenRefused("no code"))
        case .refused(let error):
            switch error {
            case "access_denied": .problem(.consentRefused)
            case "server_error", "temporarily_unavailable": .problem(.providerUnavailable)
            default: .problem(.providerError(error.excerpt))
            }
        }
    }

    /// Returns the problem of a failed code exchange.
    static func problem(_ failure: ProviderFailure) -> LoginProblem {
        switch failure {
        case .unavailable: .providerUnavailable
        case .invalid(let reason): .tokenRefused(reason)
        case .refused(let code, _): .providerError(code)
        }
    }

    static func problem(_ error: TokenError) -> LoginProblem {
        switch error {
        case .emailUnverified(let reason): .emailUnverified("\(reason)")
        case .keysUnavailable: .providerUnavailable
        case .malformed, .algorithmRefused, .keyUnknown, .signatureWrong, .expired, .notYetValid, .issuerUnknown,
            .audienceWrong, .emailMissing:
            .tokenRefused("\(error)")
        }
    }

    /// Returns the reason to reject a verified ID token for this login (OpenID Connect Core 1.0 §3.1.3.7).
    ///
    /// - Parameter identity: From a token whose signature, issuer, audience and times are valid.
    static func objection(to identity: Identity, nonce: String, client: String, email: EmailAddress) -> LoginProblem? {
        if let claim = AuthorizationRequest.objection(to: identity, nonce: nonce, client: client) {
            return .tokenRefused(claim)
        }
        guard let address = identity.email else { return .tokenRefused("email") }
        guard EmailAddress(address) == email else { return .otherAddress }
        return nil
    }
}
