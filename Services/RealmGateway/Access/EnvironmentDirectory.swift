import Access
import FoundationEssentials
import Identity
import Logging
import Model
import ObjectStore
import Postgres
import ServiceLifecycle
import ServiceRuntime
import Synchronization
import Tenants

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
        /// Environments that have moved to another installation, and where they are found there.
        var left: [EnvironmentID: String?] = [:]

        init() {}

        init(_ directory: AccessDirectory) {
            left = directory.left
            domains = directory.domains
            for stored in directory.integrations {
                let caller = Caller(stored.integration)
                add(caller, keyHash: stored.keyHash.map { Data($0.bytes) })
                guard let (client, subject) = stored.client else { continue }
                clients[caller.environment, default: [:]][client] = Client(caller: caller, subject: subject)
            }
            identities = directory.providers.compactMap { provider in
                // Of what a newer program wrote nobody is let in.
                guard let vouching = AddressVouching(rawValue: provider.addressVouchedBy) else { return nil }
                return EnvironmentIdentity(
                    environment: provider.environment.rawValue, issuer: provider.issuer, audience: provider.audience,
                    jwksURL: provider.jwksURL, vouching: vouching,
                    domains: directory.domains[provider.environment] ?? [])
            }
        }

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
        if let owner = try AccessDirectory.environment(ofAddress: email, on: &connection) {
            return owner == environment
        }
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
            let hash = Bytea(Array(keyHash))
            guard let caller = try IntegrationStore.find(keyHash: hash, on: &connection).map(Caller.init) else {
                return nil
            }
            found.withLock { found in
                found.keys[keyHash] = caller
                state.withLock { $0.add(caller, keyHash: keyHash) }
            }
            return caller
        }
    }

    /// Where an environment has moved to, if it has.
    func whereTo(_ environment: EnvironmentID) -> String?? { state.withLock { $0.left[environment] } }

    /// Whether the caller is an integration that was removed, or of an environment that has moved.
    func isRemoved(_ caller: Caller) -> Bool {
        if whereTo(caller.environment) != nil { return true }
        guard case .integration = caller.identity else { return false }
        return state.withLock { $0.integrations[caller.environment]?.contains(caller.id) != true }
    }

    /// Has `body` called whenever the environments were read.
    func onRefresh(_ body: @escaping @Sendable () -> Void) { refreshed.withLock { $0 = body } }

    /// Reads them now.
    func refresh() async throws {
        found.withLock { $0 = Found() }
        var read = State(try await pool.run { try AccessDirectory.load(on: &$0) })
        // What was found meanwhile may be younger than what was read; nothing is found between the two.
        found.withLock { found in
            for (hash, caller) in found.keys { read.add(caller, keyHash: hash) }
            state.withLock { [read] in $0 = read }
        }
        refreshed.withLock { $0 }?()
    }

    func run() async throws {
        try await Repeating("environments", every: interval, health: health, logger: logger, isFinal: Lineage.isOver) {
            try await self.refresh()
        }.run()
    }
}
