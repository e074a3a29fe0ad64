import Identity
import Model

/// Checks what a provider gave for a code.
struct TokenCheck: Sendable {
    /// What a device and its person get.
    struct Accepted: Sendable {
        let identity: Identity
        /// The token that the device API takes, and when it expires (seconds since 1970).
        let token: String
        let expires: Int64
    }

    private let verifier: TokenVerifier

    /// - Parameter refetchMin: The least time between two readings of a provider's keys. Only who has logged in gets
    ///   here: they may be asked for more often than for strangers' tokens.
    init(keys: JWKS, refetchMin: Duration) {
        var limits = TokenVerifier.Limits()
        limits.refetchMin = refetchMin
        verifier = TokenVerifier(limits: limits, fetch: { try await keys.fetch($0) })
    }

    /// - Throws: `LoginProblem`.
    func accept(
        _ tokens: ProviderTokens, for found: SessionStore.Found, _ metadata: ProviderMetadata
    ) async throws -> Accepted {
        let organisation = found.organisation
        /// ID tokens are meant for the client, the device API's tokens for the environment's audience.
        func identity(of token: String, for audience: String) async throws -> Identity {
            let issuer = EnvironmentIdentity(
                environment: organisation.environment.rawValue, issuer: organisation.issuer, audience: audience,
                jwksURL: metadata.jwksURL)
            return try await verifier.identity(of: token, among: [issuer])
        }
        guard let idToken = tokens.idToken else { throw LoginProblem.tokenRefused("no ID token") }
        let person: Identity
        do {
            person = try await identity(of: idToken, for: organisation.client.id)
        } catch let error as TokenError {
            throw LoginRule.problem(error)
        }
        if let objection = LoginRule.objection(
            to: person, nonce: found.nonce, client: organisation.client.id, email: found.email)
        {
            throw objection
        }
        // The access token where it is a JWT for the device API; else the ID token, where the API takes those.
        var reason = "no token for \(organisation.audience)"
        for token in [tokens.accessToken, idToken] {
            do {
                let api = try await identity(of: token, for: organisation.audience)
                guard api.subject == person.subject, api.email == person.email else {
                    reason += "; one of another person, or without an e-mail address"
                    continue
                }
                return Accepted(identity: person, token: token, expires: api.expires)
            } catch let error as TokenError {
                if case .keysUnavailable = error { throw LoginProblem.providerUnavailable }
                reason += "; \(error)"
            }
        }
        throw LoginProblem.tokenRefused(reason)
    }
}
