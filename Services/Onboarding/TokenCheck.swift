import Essentials
import Identity
import Model
import Tenants

/// Verifies the tokens that a provider issued for a code or a refresh token.
struct TokenCheck: Sendable {
    /// The verified identity and the device's token.
    struct Accepted: Sendable {
        let identity: Identity
        /// The token for the device API, and its expiry in seconds since 1970.
        let token: String
        let expires: Int64
    }

    private let verifier: TokenVerifier
    private let recordClaimNames: @Sendable (EnvironmentID, [String]) async -> Void

    /// - Parameters:
    ///   - refetchMin: The minimum interval between fetches of a provider's keys. May be shorter than for arbitrary
    ///     tokens, because only completed logins cause fetches.
    ///   - now: Seconds since 1970.
    ///   - recordClaimNames: Receives the claim names of each ID token after its signature is verified.
    init(
        keys: JWKS, refetchMin: Duration, now: @escaping @Sendable () -> Int64 = Self.now,
        recordClaimNames: @escaping @Sendable (EnvironmentID, [String]) async -> Void = { _, _ in }
    ) {
        var limits = TokenVerifier.Limits()
        limits.refetchMin = refetchMin
        verifier = TokenVerifier(limits: limits, now: now, fetch: { try await keys.fetch($0) })
        self.recordClaimNames = recordClaimNames
    }

    /// The system's clock.
    static let now: @Sendable () -> Int64 = { Timestamp.now().secondsSinceEpoch }

    /// Verifies the tokens of a login.
    ///
    /// - Throws: `LoginProblem`.
    func accept(
        _ tokens: ProviderTokens, for pending: SessionStore.PendingLogin, _ metadata: ProviderMetadata
    ) async throws -> Accepted {
        let organisation = pending.organisation
        guard let idToken = tokens.idToken else { throw LoginProblem.tokenRefused("no ID token") }
        let person: Identity
        do {
            person = try await identity(of: idToken, for: organisation.client.id, organisation, metadata)
        } catch let error as TokenError {
            // Lets an administrator see which claim is missing.
            if error.concernsAddress { await recordClaimNames(organisation.environment, VerifiedClaims(idToken).names) }
            throw LoginRule.problem(error)
        }
        await recordClaimNames(organisation.environment, VerifiedClaims(idToken).names)
        if let objection = LoginRule.objection(
            to: person, nonce: pending.nonce, client: organisation.client.id, email: pending.email)
        {
            throw objection
        }
        let device = try await deviceToken(tokens, organisation, metadata) {
            $0.subject == person.subject && $0.email == person.email
        }
        return Accepted(identity: person, token: device.token, expires: device.expires)
    }

    /// Verifies the tokens of a renewal: they must belong to the same person (OpenID Connect Core 1.0 §12.2). The
    /// address may have changed, but must be verified.
    ///
    /// - Parameter subject: The subject of the person's account at the provider.
    /// - Throws: `LoginProblem`.
    func renewed(
        _ tokens: ProviderTokens, subject: String, of organisation: Organisation, _ metadata: ProviderMetadata
    ) async throws -> (token: String, expires: Int64) {
        if let idToken = tokens.idToken {
            do {
                let person = try await identity(of: idToken, for: organisation.client.id, organisation, metadata)
                guard person.subject == subject else { throw LoginProblem.tokenRefused("sub") }
            } catch let error as TokenError where !error.concernsAddress {
                throw LoginRule.problem(error)
            } catch is TokenError {
                // A refreshed ID token may have fewer claims; the device's token must have a verified address.
            }
        }
        return try await deviceToken(tokens, organisation, metadata) { $0.subject == subject && $0.email != nil }
    }

    private func identity(
        of token: String, for audience: String, _ organisation: Organisation, _ metadata: ProviderMetadata
    ) async throws -> Identity {
        try await verifier.identity(of: token, among: [organisation.identity(for: audience, keysAt: metadata.jwksURL)])
    }

    /// Returns the access token if it is a JWT for the device API, otherwise the ID token if the API accepts it.
    private func deviceToken(
        _ tokens: ProviderTokens, _ organisation: Organisation, _ metadata: ProviderMetadata,
        isTheirs: (Identity) -> Bool
    ) async throws -> (token: String, expires: Int64) {
        var reason = "no token for \(organisation.audience)"
        for token in [tokens.accessToken, tokens.idToken].compactMap(\.self) {
            do {
                let identity = try await identity(of: token, for: organisation.audience, organisation, metadata)
                if isTheirs(identity) { return (token, identity.expires) }
                reason += "; a token of another person, or without an e-mail address"
            } catch let error as TokenError {
                if case .keysUnavailable = error { throw LoginProblem.providerUnavailable }
                reason += "; \(error)"
            }
        }
        throw LoginProblem.tokenRefused(reason)
    }
}
