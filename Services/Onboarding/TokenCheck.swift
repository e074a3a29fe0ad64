import Essentials
import Identity
import Model
import Tenants

/// Checks what a provider gave for a code, or for a refresh token.
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
    ///   - now: Seconds since 1970.
    ///   - note: Told the names of each ID token's claims once it is known whose it is.
    init(
        keys: JWKS, refetchMin: Duration, now: @escaping @Sendable () -> Int64 = Self.now,
        note: @escaping @Sendable (EnvironmentID, [String]) async -> Void = { _, _ in }
    ) {
        var limits = TokenVerifier.Limits()
        limits.refetchMin = refetchMin
        verifier = TokenVerifier(limits: limits, now: now, fetch: { try await keys.fetch($0) })
        self.note = note
    }

    /// The system's clock.
    static let now: @Sendable () -> Int64 = { Timestamp.now().secondsSinceEpoch }

    /// - Throws: `LoginProblem`.
    func accept(
        _ tokens: ProviderTokens, for found: SessionStore.Found, _ metadata: ProviderMetadata
    ) async throws -> Accepted {
        let organisation = found.organisation
        guard let idToken = tokens.idToken else { throw LoginProblem.tokenRefused("no ID token") }
        let person: Identity
        do {
            person = try await identity(of: idToken, for: organisation.client.id, organisation, metadata)
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
        let device = try await deviceToken(tokens, organisation, metadata) {
            $0.subject == person.subject && $0.email == person.email
        }
        return Accepted(identity: person, token: device.token, expires: device.expires)
    }

    /// The token that takes the place of one that ends, of the same person (OpenID Connect Core 1.0 §12.2). Their
    /// address may have changed; somebody must vouch for it still.
    ///
    /// - Parameter subject: The person's at the provider.
    /// - Throws: `LoginProblem`.
    func renewed(
        _ tokens: ProviderTokens, subject: String, of organisation: Organisation, _ metadata: ProviderMetadata
    ) async throws -> (token: String, expires: Int64) {
        if let idToken = tokens.idToken {
            do {
                let person = try await identity(of: idToken, for: organisation.client.id, organisation, metadata)
                guard person.subject == subject else { throw LoginProblem.tokenRefused("sub") }
            } catch let error as TokenError where !error.isOfAddress {
                throw LoginRule.problem(error)
            } catch is TokenError {
                // A refreshed ID token may say less; that of the device must name an address that is vouched for.
            }
        }
        return try await deviceToken(tokens, organisation, metadata) { $0.subject == subject && $0.email != nil }
    }

    private func identity(
        of token: String, for audience: String, _ organisation: Organisation, _ metadata: ProviderMetadata
    ) async throws -> Identity {
        try await verifier.identity(
            of: token, among: [organisation.identity(for: audience, keysAt: metadata.jwksURL)])
    }

    /// The access token where it is a JWT for the device API; else the ID token, where the API takes those.
    private func deviceToken(
        _ tokens: ProviderTokens, _ organisation: Organisation, _ metadata: ProviderMetadata,
        isTheirs: (Identity) -> Bool
    ) async throws -> (token: String, expires: Int64) {
        var reason = "no token for \(organisation.audience)"
        for token in [tokens.accessToken, tokens.idToken].compactMap(\.self) {
            do {
                let identity = try await identity(of: token, for: organisation.audience, organisation, metadata)
                if isTheirs(identity) { return (token, identity.expires) }
                reason += "; one of another person, or without an e-mail address"
            } catch let error as TokenError {
                if case .keysUnavailable = error { throw LoginProblem.providerUnavailable }
                reason += "; \(error)"
            }
        }
        throw LoginProblem.tokenRefused(reason)
    }
}
