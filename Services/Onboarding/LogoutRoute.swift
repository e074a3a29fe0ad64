import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import Logging
import Postgres
import Tenants

/// `POST /v1/logout`: ends a device. Its credential renews no token any more, and it gets no push messages.
///
/// The response does not disclose whether the credential exists. An access token that was issued before remains valid
/// until it expires.
struct LogoutRoute: Sendable {
    let devices: DeviceStore
    let pool: Pool
    let limits: OnboardingLimits
    let provider: OpenIDProvider
    let providers: ProviderDirectory
    let clients: ClientAddress
    let logger: Logger

    private struct Body: Decodable {
        let credential: String
    }

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let client = clients.text(request, context)
        let bytes = try await JSONBody.read(request, bytesMax: limits.bodyBytesMax)
        guard let body = try? JSONDecoder().decode(Body.self, from: Data(bytes)) else {
            throw Problems.credentialMissing
        }
        let credential = DeviceCredential(body.credential)
        let ended = try await mappingDatabaseErrors { try await end(credential, from: client) }
        // Detached from the request: a disconnect must not prevent the revocation.
        if let ended { await Task { await revoke(ended) }.value }
        return Response(status: .noContent)
    }

    /// - Returns: The device's login, if this request has ended it.
    private func end(_ credential: DeviceCredential?, from client: String) async throws -> DeviceStore.EndedLogin? {
        try await pool.run { [devices, limits] connection in
            guard let credential, try devices.hasIssued(credential, on: &connection) else {
                let guesses = RateLimiter.key(guessesOf: client, limits)
                guard try RateLimiter.count(guesses, on: &connection) else { throw Problems.tooMany }
                return nil
            }
            return try devices.logOut(credential, from: client, on: &connection)
        }
    }

    /// Revokes the refresh token at the provider. If that fails, the token is erased here in any case.
    private func revoke(_ ended: DeviceStore.EndedLogin) async {
        do {
            let metadata = try await providers.metadata(
                of: ended.organisation.issuer, at: ended.organisation.discoveryURL)
            try await provider.revoke(ended.refreshToken, as: ended.organisation.client, at: metadata)
        } catch {
            logger.info(
                "token not revoked at the provider",
                metadata: ["environment": "\(ended.organisation.environment)", "reason": "\(error)"])
        }
    }
}
