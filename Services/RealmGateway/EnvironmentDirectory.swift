import Identity
import Logging
import Model
import Postgres
import Runtime
import ServiceLifecycle
import Synchronization

/// The environments and their identity providers, read again every few seconds: one that was added needs no restart.
final class EnvironmentDirectory: Service, Sendable {
    private struct State {
        var identities: [EnvironmentIdentity] = []
        var domains: [EnvironmentID: Set<String>] = [:]
        /// The numbers of all integrations, and those that come with a token of the identity provider by client id.
        var integrations: [EnvironmentID: Set<Int32>] = [:]
        var clients: [EnvironmentID: [String: Caller]] = [:]
    }

    private let state = Mutex(State())
    private let pool: Pool
    private let interval: Duration
    private let health: Health?
    private let logger: Logger
    /// Called when it was read again.
    private let refreshed = Mutex<(@Sendable () -> Void)?>(nil)

    init(
        pool: Pool, interval: Duration = .seconds(2), health: Health? = nil,
        logger: Logger
    ) {
        self.pool = pool
        self.interval = interval
        self.health = health
        self.logger = logger
    }

    /// What tokens are accepted.
    var identities: [EnvironmentIdentity] { state.withLock { $0.identities } }

    /// Whether an e-mail address belongs to the environment's organisation.
    func isMember(_ email: String, of environment: EnvironmentID) -> Bool {
        guard let at = email.lastIndex(of: "@") else { return false }
        let domain = String(email[email.index(after: at)...])
        return state.withLock { $0.domains[environment]?.contains(domain) ?? false }
    }

    /// The integration that one of these client ids names.
    func integration(ofClients clients: [String], in environment: EnvironmentID) -> Caller? {
        let known = state.withLock { $0.clients[environment] } ?? [:]
        return clients.lazy.compactMap { known[$0] }.first
    }

    /// Whether the caller is an integration that was removed.
    func isRemoved(_ caller: Caller) -> Bool {
        guard case .integration = caller.identity else { return false }
        return state.withLock { $0.integrations[caller.environment]?.contains(caller.id) != true }
    }

    /// Has `body` called whenever the environments were read.
    func onRefresh(_ body: @escaping @Sendable () -> Void) { refreshed.withLock { $0 = body } }

    /// Reads them now.
    func refresh() async throws {
        let read = try await pool.run { connection in
            var read = State()
            let answers = try connection.run([
                "SELECT environment_id, issuer, audience, jwks_url FROM access.provider ORDER BY 1",
                "SELECT environment_id, id, name, client_id FROM access.integration",
                "SELECT environment_id, domain FROM access.domain",
            ])
            for row in answers[1] {
                let environment = EnvironmentID(rawValue: try row.value(0))
                let caller = Caller(
                    environment: environment, id: -(try row.value(1, as: Int32.self)),
                    identity: .integration(name: try row.value(2)))
                read.integrations[environment, default: []].insert(caller.id)
                if let client: String = try row.optional(3) { read.clients[environment, default: [:]][client] = caller }
            }
            for row in answers[0] {
                let id: Int32 = try row.value(0)
                read.identities.append(
                    EnvironmentIdentity(
                        environment: id, issuer: try row.value(1), audience: try row.value(2), jwksURL: try row.value(3)
                    ))
            }
            for row in answers[2] {
                read.domains[EnvironmentID(rawValue: try row.value(0)), default: []].insert(try row.value(1))
            }
            return read
        }
        state.withLock { $0 = read }
        refreshed.withLock { $0 }?()
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await self.refresh()
                    self.health?.ready(true, source: "database")
                } catch {
                    self.logger.warning("cannot read the environments", metadata: ["error": "\(error)"])
                    self.health?.ready(false, source: "database", reason: "PostgreSQL does not answer")
                }
                try? await Task.sleep(for: self.interval)
            }
        }
    }
}
