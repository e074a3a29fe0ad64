import Essentials
import Identity
import Model
import Tenants

/// Evaluates an identity provider's responses. Pure functions.
enum LoginRule {
    /// Returns the authorization code in the parameters of the redirect (RFC 6749 §4.1.2, RFC 9207).
    ///
    /// - Parameter namesIssuer: Whether the provider declares that its responses carry `iss`.
    static func code(in fields: FormFields, issuer: String, namesIssuer: Bool) throws(LoginProblem) -> String {
        switch AuthorizationResponse(fields, issuer: issuer, namesIssuer: namesIssuer) {
        case .code(let code): return code
        case .otherIssuer(let given): throw .tokenRefused("iss is \(given?.excerpt ?? "missing")")
        case .noCode: throw .tokenRefused("no code")
        case .refused("access_denied"): throw .consentRefused
        case .refused("server_error"), .refused("temporarily_unavailable"): throw .providerUnavailable
        case .refused(let error): throw .providerError(error.excerpt)
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
