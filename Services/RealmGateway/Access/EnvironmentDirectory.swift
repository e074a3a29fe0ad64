import Access
import FoundationEssentials
import Logging
import Model
import ObjectStore
import Postgres
import ServiceLifecycle
import ServiceRuntime
import Synchronization
import Tenants

/// The environments, their identity providers and integrations, reloaded every few seconds: an added environment needs
/// no restart.
final class EnvironmentDirectory: Service, Sendable {
    private struct State {
        var identities: [EnvironmentIdentity] = []
        var domains: [EnvironmentID: Set<String>] = [:]
        /// The ids of all integrations, and their credentials: a key's hash, or a client id.
        var integrations: [EnvironmentID: Set<Int32>] = [:]
        var keys: [Data: Caller] = [:]
        /// The integrations that authenticate with an OAuth client's tokens, with the subject of these.
        var clients: [EnvironmentID: [String: (caller: Caller, subject: String)]] = [:]
        /// Environments that have moved to another installation, with their new address.
        var moved: [EnvironmentID: String?] = [:]
        /// The number of the reload that read it.
        var reload = 0

        init() {}

        init(_ directory: AccessDirectory) {
            moved = directory.left
            domains = directory.domains
            identities = directory.providers
            for stored in directory.integrations {
                let caller = Caller.integration(stored.integration)
                add(caller, keyHash: stored.keyHash.map { Data($0.bytes) })
                guard let (client, subject) = stored.client else { continue }
                clients[caller.environment, default: [:]][client] = (caller, subject)
            }
        }

        mutating func add(_ caller: Caller, keyHash: Data?) {
            integrations[caller.environment, default: []].insert(caller.id)
            if let keyHash { keys[keyHash] = caller }
        }
    }

    /// Keys that were looked up since the last reload, and the number of lookups.
    private struct Lookups {
        /// The number of the last reload that began.
        var reload = 0
        var keys: [Data: Caller] = [:]
        var count = 0
    }

    /// Maximum number of lookups of unknown keys in the database per reload interval. A new key works at once, and
    /// clients with invalid keys cannot overload the database.
    private static let lookupCountMax = 20

    private let state = Mutex(State())
    private let lookups = Mutex(Lookups())
    private let pool: Pool
    private let interval: Duration
    private let health: Health?
    private let logger: Logger
    /// Called after each reload.
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

    /// The issuers and audiences whose tokens are accepted.
    var identities: [EnvironmentIdentity] { state.withLock { $0.identities } }

    /// Returns whether an e-mail address belongs to the environment's organisation: by the list of addresses, which
    /// takes precedence, or by its domain.
    func isMember(_ email: String, of environment: EnvironmentID, on connection: inout Connection) throws -> Bool {
        guard let email = EmailAddress(email) else { return false }
        if let owner = try AccessDirectory.environment(ofAddress: email, on: &connection) {
            return owner == environment
        }
        return state.withLock { $0.domains[environment]?.contains(email.domain) ?? false }
    }

    /// Returns the integration of an OAuth client. The token's subject must be the client's own too, because a person's
    /// token names the app that they logged in with.
    func integration(ofClient client: String, subject: String, in environment: EnvironmentID) -> Caller? {
        guard let match = state.withLock({ $0.clients[environment]?[client] }), match.subject == subject else {
            return nil
        }
        return match.caller
    }

    /// Returns the integration whose key has this hash.
    func integration(keyHash: Data) async throws -> Caller? {
        if let caller = state.withLock({ $0.keys[keyHash] }) { return caller }
        let isWithinLimit = lookups.withLock { lookups in
            lookups.count += 1
            return lookups.count <= Self.lookupCountMax
        }
        guard isWithinLimit else { return nil }
        return try await pool.run { [self] connection in
            let hash = Bytea(Array(keyHash))
            guard let caller = try IntegrationStore.find(keyHash: hash, on: &connection).map(Caller.integration) else {
                return nil
            }
            lookups.withLock { lookups in
                lookups.keys[keyHash] = caller
                state.withLock { $0.add(caller, keyHash: keyHash) }
            }
            return caller
        }
    }

    /// Returns the new address of an environment that has moved: `.some(nil)` if it has moved and the address is
    /// unknown.
    func destination(of environment: EnvironmentID) -> String?? { state.withLock { $0.moved[environment] } }

    /// Returns whether the caller is a removed integration, or of an environment that has moved.
    func isRemoved(_ caller: Caller) -> Bool {
        if destination(of: caller.environment) != nil { return true }
        guard case .integration = caller else { return false }
        return state.withLock { $0.integrations[caller.environment]?.contains(caller.id) != true }
    }

    /// Sets the function that is called after each reload.
    func onRefresh(_ body: @escaping @Sendable () -> Void) { refreshed.withLock { $0 = body } }

    /// Reloads everything. A concurrent reload that began earlier and ends later has no effect.
    func refresh() async throws {
        let reload = lookups.withLock { lookups in
            lookups = Lookups(reload: lookups.reload + 1)
            return lookups.reload
        }
        var loaded = State(try await pool.run { try AccessDirectory.load(on: &$0) })
        loaded.reload = reload
        // Keys that were looked up meanwhile may be newer than the loaded state. The lock prevents further lookups
        // until it is replaced.
        lookups.withLock { lookups in
            for (hash, caller) in lookups.keys { loaded.add(caller, keyHash: hash) }
            state.withLock { [loaded] in if loaded.reload > $0.reload { $0 = loaded } }
        }
        refreshed.withLock { $0 }?()
    }

    func run() async throws {
        try await Repeating("environments", every: interval, health: health, logger: logger, isFinal: Lineage.isOver) {
            try await self.refresh()
        }.run()
    }
}
