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
    }

    private let state = Mutex(State())
    private let pool: Pool
    private let interval: Duration
    private let health: Health?
    private let logger: Logger

    init(pool: Pool, interval: Duration = .seconds(2), health: Health? = nil, logger: Logger) {
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

    /// Reads them now.
    func refresh() async throws {
        let read = try await pool.run { connection in
            var read = State()
            let rows = try connection.run(
                "SELECT environment_id, domains, issuer, audience, jwks_url FROM access.provider ORDER BY 1")
            for row in rows {
                let id: Int32 = try row.value(0)
                read.identities.append(
                    EnvironmentIdentity(
                        environment: id, issuer: try row.value(2), audience: try row.value(3), jwksURL: try row.value(4)
                    ))
                let domains: [String] = try row.value(1)
                read.domains[EnvironmentID(rawValue: id)] = Set(domains.map { $0.lowercased() })
            }
            return read
        }
        state.withLock { $0 = read }
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
