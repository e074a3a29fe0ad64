import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird
import Identity
import Logging
import Postgres
import Tenants

/// `POST /v1/token`: renews the token of a device without a login.
///
/// The provider's new refresh token is stored first, and the next credential before the response.
/// After a crash, the device repeats the request and resumes from the stored state. Only a lost response of a provider
/// that accepts each refresh token once can end a device.
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

    private struct TokenResponse: Encodable {
        let access_token: String
        let token_type = "Bearer"
        let expires_at: String
        let credential: String
        let device_id: String
    }

    /// The provider's error codes for which a retry cannot succeed (RFC 6749 §5.2, OpenID Connect Core 1.0
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
        let beginning = try await mappingDatabaseErrors { try await begin(credential, from: client) }
        switch (beginning, credential) {
        case (.renewal(let renewal), let credential?):
            // Detached from the request: a disconnect must not prevent storing the new refresh token.
            return try await Task {
                try await mappingDatabaseErrors { try await renew(renewal, credential, from: client) }
            }.value
        case (.busy(let seconds), _): throw Problems.renewalInProgress(seconds: seconds)
        case (.loginNeeded(let reason), _): throw refusal(reason)
        case (.renewal, nil): throw refusal(.unknown)
        }
    }

    /// Limits guesses per network address and renewals per device. Devices are not affected by guesses from the same
    /// network address, such as a carrier's NAT.
    private func begin(_ credential: DeviceCredential?, from client: String) async throws -> DeviceStore.BeginResult {
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
        logger.info("device login required", metadata: ["reason": "\(reason.rawValue)"])
        return Problems.loginNeeded(reason)
    }

    private func renew(
        _ renewal: DeviceStore.Renewal, _ used: DeviceCredential, from client: String
    ) async throws -> Response {
        do {
            let metadata = try await metadata(of: renewal)
            let tokens = try await refresh(renewal, metadata, from: client)
            if let refreshToken = tokens.refreshToken {
                try await storeRefreshToken(refreshToken, of: renewal, metadata)
            }
            let (token, expires) = try await accepted(tokens, renewal, metadata)
            let next = used.successor(by: devices.issuer)
            let result = try await pool.runWithRetry(limits.retryMax) { [devices] connection in
                try devices.complete(renewal, used: used, next: next, on: &connection)
            }
            switch result {
            case .done: break
            case .superseded: throw Problems.renewalInProgress(seconds: 1)
            case .revoked: throw refusal(.ended)
            }
            logger.info("token renewed", metadata: ["environment": "\(renewal.environment)"])
            return try Response.json(
                TokenResponse(
                    access_token: token, expires_at: Timestamp(millisecondsSinceEpoch: expires * 1_000).description,
                    credential: next.text, device_id: next.deviceID))
        } catch {
            // If this fails, the lease expires.
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
        // After this time another renewal may use the same refresh token.
        guard .now < renewal.callDeadline else { throw Problems.providerUnavailable }
        do {
            return try await provider.refresh(renewal.refreshToken, as: renewal.organisation.client, at: metadata)
        } catch {
            guard case .refused(let code, _) = error, Self.finalCodes.contains(code) else {
                throw unavailable(error, renewal)
            }
            try await pool.runWithRetry(limits.retryMax) { connection in
                _ = try connection.run(DeviceStore.end(renewal, from: client))
            }
            throw refusal(.refusedByProvider)
        }
    }

    private func storeRefreshToken(
        _ refreshToken: String, of renewal: DeviceStore.Renewal, _ metadata: ProviderMetadata
    ) async throws {
        let result = try await pool.runWithRetry(limits.retryMax) { [devices] connection in
            try devices.store(refreshToken, of: renewal, on: &connection)
        }
        switch result {
        case .done: return
        // Revoking this token might also revoke the other renewal's.
        case .superseded: throw Problems.renewalInProgress(seconds: 1)
        case .revoked:
            // The revocation did not include this token.
            try? await provider.revoke(refreshToken, as: renewal.organisation.client, at: metadata)
            throw refusal(.ended)
        }
    }

    private func accepted(
        _ tokens: ProviderTokens, _ renewal: DeviceStore.Renewal, _ metadata: ProviderMetadata
    ) async throws -> (token: String, expires: Int64) {
        do {
            return try await check.renewed(tokens, subject: renewal.subject, of: renewal.organisation, metadata)
        } catch let problem as LoginProblem {
            if problem == .providerUnavailable { throw Problems.providerUnavailable }
            logger.info("renewed token rejected", metadata: ["reason": "\(problem)"])
            throw refusal(.tokenRefused)
        }
    }

    private func unavailable(_ failure: ProviderFailure, _ renewal: DeviceStore.Renewal) -> Problem {
        logger.warning(
            "token renewal failed", metadata: ["environment": "\(renewal.environment)", "reason": "\(failure)"])
        return Problems.providerUnavailable
    }
}
