import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import Model
import Postgres
import Tenants

/// `POST /register_device`: creates a session for the device and returns the login URL.
struct RegisterRoute: Sendable {
    let store: SessionStore
    let pool: Pool
    let limits: OnboardingLimits
    let providers: ProviderDirectory
    let redirect: String
    let clients: ClientAddress
    let changes: SessionChanges

    private struct Body: Decodable {
        let email: String
    }

    private struct RegisterResponse: Encodable {
        let login_url: String
        let session_id: String
        let expires_in: Int64
    }

    @concurrent func handle(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let email = try await email(in: request)
        let client = clients.text(request, context)
        let organisation = try await organisation(of: email, for: client)
        let metadata: ProviderMetadata
        do {
            metadata = try await providers.metadata(of: organisation.issuer, at: organisation.discoveryURL)
        } catch {
            throw Problems.providerUnavailable
        }
        let (id, attempt) = (Capability(), AuthorizationRequest())
        let device = Self.displayName(request.headers[.userAgent] ?? "")
        try await withRetry { [store] connection in
            _ = try connection.run(try store.begin(id, email, organisation, attempt, from: client, device: device))
        }
        changes.signal()
        return try .json(
            RegisterResponse(
                login_url: attempt.url(organisation, metadata, email, redirect: redirect), session_id: id.text,
                expires_in: limits.sessionMax.components.seconds))
    }

    private func organisation(of email: EmailAddress, for client: String) async throws -> Organisation {
        let isWithin = try await withRetry { [limits] connection in
            try RateLimiter.countRegistration(of: email, from: client, limits, on: &connection)
        }
        guard isWithin else { throw Problems.tooMany }
        switch try await withRetry({ [store] in try Organisation.find(email, store.secrets, on: &$0) }) {
        case .none: throw Problems.organisationUnknown
        case .notConfigured: throw Problems.loginNotConfigured
        case .organisation(let organisation, let isKnown):
            // Unless the environment discloses who is known, unknown people get the same response after the same work.
            guard isKnown || organisation.hidesUnknown else { throw Problems.personUnknown }
            return organisation
        }
    }

    /// Retries while the database is busy or unavailable, before the client has to.
    private func withRetry<Success: Sendable>(
        _ body: @escaping @Sendable (inout Connection) throws -> Success
    ) async throws -> Success {
        try await mappingDatabaseErrors { try await pool.runWithRetry(limits.registerRetryMax, body) }
    }

    private func email(in request: Request) async throws -> EmailAddress {
        let bytes = try await JSONBody.read(request, bytesMax: limits.bodyBytesMax)
        guard let body = try? JSONDecoder().decode(Body.self, from: Data(bytes)) else { throw Problems.malformed }
        guard let email = EmailAddress(body.email) else { throw Problems.emailUnusable }
        return email
    }

    /// Returns the device's user agent as printable ASCII, for display and logs.
    private static func displayName(_ agent: String) -> String {
        String(decoding: agent.utf8.prefix(100).map { (0x20...0x7E).contains($0) ? $0 : 0x3F }, as: UTF8.self)
    }
}

/// Runs `body` and converts transient database errors into a problem with `Retry-After`.
func mappingDatabaseErrors<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
    do {
        return try await body()
    } catch let error as PostgresError where error.isRetriable || error.isTimelineChange {
        throw Problems.databaseUnavailable
    }
}
