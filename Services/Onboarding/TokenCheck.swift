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
    private let note: @Sendable (EnvironmentID, [String]) async -> Void

    /// - Parameters:
    ///   - refetchMin: The least time between two readings of a provider's keys. Only who has logged in gets here: they
    ///     may be asked for more often than for strangers' tokens.
    ///   - note: Told the names of each ID token's claims once it is known whose it is.
    init(
        keys: JWKS, refetchMin: Duration,
        note: @escaping @Sendable (EnvironmentID, [String]) async -> Void = { _, _ in }
    ) {
        var limits = TokenVerifier.Limits()
        limits.refetchMin = refetchMin
        verifier = TokenVerifier(limits: limits, fetch: { try await keys.fetch($0) })
        self.note = note
    }

    /// - Throws: `LoginProblem`.
    func accept(
        _ tokens: ProviderTokens, for found: SessionStore.Found, _ metadata: ProviderMetadata
    ) async throws -> Accepted {
        let organisation = found.organisation
        func identity(of token: String, for audience: String) async throws -> Identity {
            try await verifier.identity(
                of: token, among: [organisation.identity(for: audience, keysAt: metadata.jwksURL)])
        }
        guard let idToken = tokens.idToken else { throw LoginProblem.tokenRefused("no ID token") }
        let person: Identity
        do {
            person = try await identity(of: idToken, for: organisation.client.id)
        } catch let error as TokenError {
            // What is lacking can be seen of it then.
            if error.isOfAddress { await note(organisation.environment, ClaimNames.of(idToken)) }
            throw LoginRule.problem(error)
        }
        await note(organisation.environment, ClaimNames.of(idToken))
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
