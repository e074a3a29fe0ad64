import Identity
import Model
import Synchronization

/// Checks what a provider gave for a code.
final class TokenCheck: Sendable {
    /// What a device and its person get.
    struct Accepted: Sendable {
        let identity: Identity
        /// The token that the device API takes, and when it expires (seconds since 1970).
        let token: String
        let expires: Int64
    }

    private struct Known {
        /// ID tokens are meant for the client, the device API's tokens for the environment's audience.
        var clients: [EnvironmentID: EnvironmentIdentity] = [:]
        var audiences: [EnvironmentID: EnvironmentIdentity] = [:]
    }

    private let known: KnownIdentities
    private let idTokens: TokenVerifier
    private let accessTokens: TokenVerifier

    private final class KnownIdentities: Sendable {
        let known = Mutex(Known())
    }

    /// - Parameter refetchMin: The least time between two readings of a provider's keys.
    init(keys: JWKS, refetchMin: Duration) {
        let known = KnownIdentities()
        self.known = known
        // Only who has logged in gets here: keys may be asked for more often than for strangers' tokens.
        var limits = TokenVerifier.Limits()
        limits.refetchMin = refetchMin
        idTokens = TokenVerifier(
            limits: limits, environments: { known.known.withLock { Array($0.clients.values) } },
            fetch: { try await keys.fetch($0) })
        accessTokens = TokenVerifier(
            limits: limits, environments: { known.known.withLock { Array($0.audiences.values) } },
            fetch: { try await keys.fetch($0) })
    }

    /// - Throws: `LoginProblem`.
    func accept(
        _ tokens: ProviderTokens, for found: SessionStore.Found, _ metadata: ProviderMetadata
    ) async throws -> Accepted {
        let organisation = found.organisation
        func identity(_ audience: String) -> EnvironmentIdentity {
            EnvironmentIdentity(
                environment: organisation.environment.rawValue, issuer: organisation.issuer, audience: audience,
                jwksURL: metadata.jwksURL)
        }
        known.known.withLock { known in
            known.clients[organisation.environment] = identity(organisation.client.id)
            known.audiences[organisation.environment] = identity(organisation.audience)
        }
        guard let idToken = tokens.idToken else { throw LoginProblem.tokenRefused("no ID token") }
        let person: Identity
        do {
            person = try await idTokens.identity(of: idToken)
        } catch let error as TokenError {
            throw LoginRule.problem(error)
        }
        guard person.environment == organisation.environment.rawValue else {
            throw LoginProblem.tokenRefused("issued for another environment")
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
                let api = try await accessTokens.identity(of: token)
                guard api.environment == person.environment, api.issuer == person.issuer,
                    api.subject == person.subject, api.email == person.email
                else { continue }
                return Accepted(identity: person, token: token, expires: api.expires)
            } catch let error as TokenError {
                if case .keysUnavailable = error { throw LoginProblem.providerUnavailable }
                reason += "; \(error)"
            }
        }
        throw LoginProblem.tokenRefused(reason)
    }
}
