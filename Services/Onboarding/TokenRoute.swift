import Essentials
import FoundationEssentials
import HTTPClient
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import Logging
import Model
import Postgres

/// `POST /v1/token`: another token for a device that came in before, without its person.
///
/// The provider's new refresh token is stored before anything else is done, and the next credential before it is
/// answered. A crash in between costs nothing: the device repeats, and goes on from what is stored. Only a provider's
/// answer that reaches nobody can end a device, when that provider takes no refresh token twice.
struct TokenRoute: Sendable {
    let devices: DeviceStore
    let pool: Pool
    let limits: OnboardingLimits
    let provider: OpenIDProvider
    let providers: ProviderDirectory
    let check: TokenCheck
    let clients: ClientAddress
    let logger: Logger

    private struct Body: Decodable {
        let credential: String
    }

    private struct Answer: Encodable {
        let access_token: String
        let token_type = "Bearer"
        let expires_at: String
        let credential: String
    }

    /// The provider's codes that another try of the same token does not change (RFC 6749 §5.2, OpenID Connect Core 1.0
    /// §3.1.2.6).
    private static let finalCodes: Set<String> = [
        "invalid_grant", "interaction_required", "login_required", "consent_required",
    ]

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let client = clients.text(request, context)
        let bytes = try await JSONBody.read(request, bytesMax: limits.bodyBytesMax)
        guard let body = try? JSONDecoder().decode(Body.self, from: Data(bytes)) else {
            throw Problems.credentialMissing
        }
        let credential = DeviceCredential(body.credential)
        let beginning = try await answering { try await begin(credential, from: client) }
        switch (beginning, credential) {
        case (.renewal(let renewal), let credential?):
            // A device that goes away does not keep the new refresh token from being stored.
            return try await Task { try await answering { try await renew(renewal, credential, from: client) } }.value
        case (.busy(let seconds), _): throw Problems.renewalUnderWay(seconds: seconds)
        case (.loginNeeded(let reason), _): throw refusal(reason)
        case (.renewal, nil): throw refusal(.unknown)
        }
    }

    /// Whoever guesses is held back, and a device asks only so often. Who has a device is not held back for those who
    /// guess behind the same network address, such as a carrier's.
    private func begin(_ credential: DeviceCredential?, from client: String) async throws -> DeviceStore.Beginning {
        try await pool.run { [devices, limits] connection in
            guard let credential, try devices.hasIssued(credential, on: &connection) else {
                let guesses = RateLimiter.key(guessesOf: client, limits)
                guard try RateLimiter.count(guesses, on: &connection) else { throw Problems.tooMany }
                return .loginNeeded(.unknown)
            }
            let renewals = RateLimiter.key(device: credential.device, limits)
            guard try RateLimiter.count(renewals, on: &connection) else { throw Problems.tooMany }
            return try devices.begin(credential, from: client, on: &connection)
        }
    }

    private func refusal(_ reason: LoginReason) -> Problem {
        logger.info("a device must log in again", metadata: ["reason": "\(reason.rawValue)"])
        return Problems.loginNeeded(reason)
    }

    private func renew(
        _ renewal: DeviceStore.Renewal, _ used: DeviceCredential, from client: String
    ) async throws -> Response {
        do {
            let metadata = try await metadata(of: renewal)
            let tokens = try await refresh(renewal, metadata, from: client)
            if let refreshToken = tokens.refreshToken {
                try await keep(refreshToken, of: renewal, metadata)
            }
            let (token, expires) = try await accepted(tokens, renewal, metadata)
            let next = used.successor(by: devices.issuer)
            let written = try await pool.runPatiently(limits.patienceMax) { [devices] connection in
                try devices.complete(renewal, used: used, next: next, on: &connection)
            }
            switch written {
            case .done: break
            case .overtaken: throw Problems.renewalUnderWay(seconds: 1)
            case .shutOut: throw refusal(.ended)
            }
            logger.info("a token is renewed", metadata: ["environment": "\(renewal.environment)"])
            return try Response.json(
                Answer(
                    access_token: token,
                    expires_at: Timestamp(millisecondsSinceEpoch: expires * 1_000).description,
                    credential: next.text))
        } catch {
            // Otherwise the lease ends by itself.
            try? await pool.run { connection in _ = try connection.run(DeviceStore.release(renewal)) }
            throw error
        }
    }

    private func metadata(of renewal: DeviceStore.Renewal) async throws -> ProviderMetadata {
        do {
            return try await providers.metadata(
                of: renewal.organisation.issuer, at: renewal.organisation.discoveryURL)
        } catch {
            throw unavailable(error, renewal)
        }
    }

    private func refresh(
        _ renewal: DeviceStore.Renewal, _ metadata: ProviderMetadata, from client: String
    ) async throws -> ProviderTokens {
        // Later another renewal could use the same refresh token.
        guard .now < renewal.callsUntil else { throw Problems.providerUnavailable }
        do {
            return try await provider.refresh(
                renewal.refreshToken, as: renewal.organisation.client, at: metadata)
        } catch {
            guard case .refused(let code, _) = error, Self.finalCodes.contains(code) else {
                throw unavailable(error, renewal)
            }
            try await pool.runPatiently(limits.patienceMax) { connection in
                _ = try connection.run(DeviceStore.end(renewal, from: client))
            }
            throw refusal(.refusedByProvider)
        }
    }

    private func keep(
        _ refreshToken: String, of renewal: DeviceStore.Renewal, _ metadata: ProviderMetadata
    ) async throws {
        let written = try await pool.runPatiently(limits.patienceMax) { [devices] connection in
            try devices.keep(refreshToken, of: renewal, on: &connection)
        }
        switch written {
        case .done: return
        // Revoking this one might end what the other got.
        case .overtaken: throw Problems.renewalUnderWay(seconds: 1)
        case .shutOut:
            // Whoever shut the device out has not seen this one.
            try? await provider.revoke(refreshToken, as: renewal.organisation.client, at: metadata)
            throw refusal(.ended)
        }
    }

    private func accepted(
        _ tokens: ProviderTokens, _ renewal: DeviceStore.Renewal, _ metadata: ProviderMetadata
    ) async throws -> (token: String, expires: Int64) {
        do {
            return try await check.renewed(
                tokens, subject: renewal.subject, of: renewal.organisation, metadata)
        } catch let problem as LoginProblem {
            if problem == .providerUnavailable { throw Problems.providerUnavailable }
            logger.info("a renewed token is refused", metadata: ["reason": "\(problem)"])
            throw refusal(.tokenRefused)
        }
    }

    private func unavailable(_ failure: ProviderFailure, _ renewal: DeviceStore.Renewal) -> Problem {
        logger.warning(
            "a token cannot be renewed",
            metadata: ["environment": "\(renewal.environment)", "reason": "\(failure)"])
        return Problems.providerUnavailable
    }
}
