import Environments
import FoundationEssentials
import Identity
import Logging
import Model
import Postgres
import Realms
import Runtime
import ServiceLifecycle
import Synchronization

/// The environments and their identity providers, read again every few seconds: one that was added needs no restart.
final class EnvironmentDirectory: Service, Sendable {
    /// An integration that comes in with a client's tokens.
    private struct Client {
        let caller: Caller
        /// The subject its tokens have; the client id when none was given.
        let subject: String
    }

    private struct State {
        var identities: [EnvironmentIdentity] = []
        var domains: [EnvironmentID: Set<String>] = [:]
        /// The numbers of all integrations, and how they come in: by the hash of their key, or by client id.
        var integrations: [EnvironmentID: Set<Int32>] = [:]
        var keys: [Data: Caller] = [:]
        var clients: [EnvironmentID: [String: Client]] = [:]

        mutating func add(_ caller: Caller, keyHash: Data?) {
            integrations[caller.environment, default: []].insert(caller.id)
            if let keyHash { keys[keyHash] = caller }
        }
    }

    /// What was found between two readings, and how often that was tried.
    private struct Found {
        var keys: [Data: Caller] = [:]
        var tryCount = 0
    }

    /// Keys that are not known are asked for in the database so many times between two readings: a key that was just
    /// made works at once, and a stranger with many cannot keep the database busy.
    private static let tryCountMax = 20

    private let state = Mutex(State())
    private let found = Mutex(Found())
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

    /// Whether an e-mail address belongs to the environment's organisation: by the list of addresses, which counts
    /// first, or by its domain.
    func isMember(_ email: String, of environment: EnvironmentID, on connection: inout Connection) throws -> Bool {
        guard let email = EmailAddress(email) else { return false }
        let rows = try connection.run(
            "SELECT environment_id FROM access.address WHERE email = \(email.description)")
        if rows.count > 0 { return try rows[0].value(0, as: Int32.self) == environment.rawValue }
        return state.withLock { $0.domains[environment]?.contains(email.domain) ?? false }
    }

    /// The integration that a program's token names: its subject must be the client's own too, because a person's token
    /// names the app that they came with.
    func integration(ofClient client: String, subject: String, in environment: EnvironmentID) -> Caller? {
        guard let known = state.withLock({ $0.clients[environment]?[client] }), known.subject == subject else {
            return nil
        }
        return known.caller
    }

    /// The integration that has the key with this hash.
    func integration(keyHash: Data) async throws -> Caller? {
        if let known = state.withLock({ $0.keys[keyHash] }) { return known }
        let mayTry = found.withLock { found in
            found.tryCount += 1
            return found.tryCount <= Self.tryCountMax
        }
        guard mayTry else { return nil }
        return try await pool.run { [self] connection in
            let rows = try connection.run(
                "SELECT environment_id, id, name FROM access.integration WHERE key_hash = \(Bytea(Array(keyHash)))")
            guard rows.count == 1 else { return nil }
            let caller = try Self.caller(rows[0])
            found.withLock { found in
                found.keys[keyHash] = caller
                state.withLock { $0.add(caller, keyHash: keyHash) }
            }
            return caller
        }
    }

    /// Row: environment_id, id, name.
    private static func caller(_ row: Row) throws -> Caller {
        Caller(
            environment: EnvironmentID(rawValue: try row.value(0)), id: -(try row.value(1, as: Int32.self)),
            identity: .integration(name: try row.value(2)))
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
        found.withLock { $0 = Found() }
        var read = try await pool.run { connection in
            var read = State()
            let answers = try connection.run([
                """
                SELECT environment_id, issuer, audience, jwks_url, address_vouched_by FROM access.provider ORDER BY 1
                """,
                """
                SELECT i.environment_id, i.id, i.name, i.key_hash, i.client_id, coalesce(i.subject, i.client_id)
                FROM access.integration i LEFT JOIN access.provider p ON p.environment_id = i.environment_id
                WHERE i.client_id IS NULL OR i.client_id IS DISTINCT FROM p.client_id
                """,
                "SELECT environment_id, domain FROM access.domain",
            ])
            for row in answers[1] { try Self.read(integration: row, into: &read) }
            for row in answers[2] {
                read.domains[EnvironmentID(rawValue: try row.value(0)), default: []].insert(try row.value(1))
            }
            for row in answers[0] { try Self.read(provider: row, into: &read) }
            return read
        }
        // What was found meanwhile may be younger than what was read; nothing is found between the two.
        found.withLock { found in
            for (hash, caller) in found.keys { read.add(caller, keyHash: hash) }
            state.withLock { [read] in $0 = read }
        }
        refreshed.withLock { $0 }?()
    }

    private static func read(provider row: Row, into read: inout State) throws {
        // Of what a newer program wrote nobody is let in.
        guard let vouching = AddressVouching(rawValue: try row.value(4)) else { return }
        let id: Int32 = try row.value(0)
        read.identities.append(
            EnvironmentIdentity(
                environment: id, issuer: try row.value(1), audience: try row.value(2), jwksURL: try row.value(3),
                vouching: vouching, domains: read.domains[EnvironmentID(rawValue: id)] ?? []))
    }

    private static func read(integration row: Row, into read: inout State) throws {
        let caller = try caller(row)
        read.add(caller, keyHash: try row.optional(3, as: Bytea.self).map { Data($0.bytes) })
        guard let client: String = try row.optional(4) else { return }
        read.clients[caller.environment, default: [:]][client] = Client(caller: caller, subject: try row.value(5))
    }

    func run() async throws {
        try await Repeating("environments", every: interval, health: health, logger: logger, isFinal: Lineage.isOver) {
            try await self.refresh()
        }.run()
    }
}
