import Access
import Audit
import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import Hummingbird
import Identity
import Logging
import Model
import Postgres
import Synchronization
import Tenants

/// The authenticated caller of a request.
struct Login: Sendable {
    let caller: Caller
    /// A person's current address at the identity provider, if it differs from that of their first login, belongs to
    /// the organisation, and no other person here has it.
    var laterEmail: String?
    /// Expiry of the token, in seconds since 1970: later requests are rejected, and streams end.
    let expires: Int64
    /// The client's network address.
    let address: String
}

/// Authenticates a request by its bearer token, as a person of an environment or as an integration.
final class Authentication: Sendable {
    private struct Subject: Hashable {
        let environment: Int32
        let issuer: String
        let subject: String
    }

    private static let cachedCountMax = 50_000
    private static let cachedSecondsMax: Int64 = 60
    /// Maximum duration of a stream that was opened with a key: keys do not expire.
    private static let keySecondsMax: Int64 = 86_400

    private let verifier: TokenVerifier
    private let directory: EnvironmentDirectory
    private let pool: Pool
    private let clients: ClientAddress
    private let logger: Logger
    /// The caller that a token identified.
    private struct CachedCaller {
        let caller: Caller
        /// The token's address.
        let email: String
        let laterEmail: String?
        let until: Int64
    }

    /// Entries expire, since an account may be unbound, and are replaced when the token has another address.
    private let cache = Mutex<[Subject: CachedCaller]>([:])
    /// Subjects whose rejection is in the audit log: one record each.
    private let audited = Mutex<Set<Subject>>([])

    init(
        verifier: TokenVerifier, directory: EnvironmentDirectory, pool: Pool, clients: ClientAddress, logger: Logger
    ) {
        self.clients = clients
        self.verifier = verifier
        self.directory = directory
        self.pool = pool
        self.logger = logger
    }

    /// - Throws: `Problem` with 401, 403 or 503.
    func login(_ request: Request, _ context: EdgeContext) async throws -> Login {
        guard let value = request.headers[.authorization], let token = Self.token(in: value) else {
            throw Problems.tokenMissing
        }
        let address = clients.text(request, context)
        if token.hasPrefix(IntegrationKey.prefix) { return try await integration(key: token, from: address) }
        do {
            let identity = try await verifier.identity(of: token)
            try checkNotMoved(EnvironmentID(rawValue: identity.environment))
            let (caller, laterEmail) = try await caller(identity, from: address)
            return Login(
                caller: caller, laterEmail: laterEmail, expires: verifier.end(of: identity), address: address)
        } catch let error as TokenError {
            logger.info("token rejected", metadata: ["reason": "\(error)", "address": "\(address)"])
            throw error.problem
        }
    }

    /// - Throws: A redirect (421) if the environment has moved to another installation.
    private func checkNotMoved(_ environment: EnvironmentID) throws(Problem) {
        if let url = directory.destination(of: environment) { throw Problem.environmentMoved(to: url) }
    }

    private static func token(in value: String) -> String? {
        let parts = value.split(separator: " ", maxSplits: 1)
        // The clients of the PowerSync protocol send `Token`.
        guard parts.count == 2, ["bearer", "token"].contains(parts[0].lowercased()) else { return nil }
        return String(parts[1])
    }

    private func caller(
        _ identity: Identity, from address: String
    ) async throws -> (caller: Caller, laterEmail: String?) {
        guard let email = identity.email else {
            let environment = EnvironmentID(rawValue: identity.environment)
            guard let client = identity.client,
                let caller = directory.integration(ofClient: client, subject: identity.subject, in: environment)
            else { throw TokenError.emailMissing }
            return (caller, nil)
        }
        let subject = Subject(environment: identity.environment, issuer: identity.issuer, subject: identity.subject)
        let now = Timestamp.now().secondsSinceEpoch
        if let cached = cache.withLock({ $0[subject] }), cached.email == email, now < cached.until {
            return (cached.caller, cached.laterEmail)
        }
        let (person, laterEmail): (Caller, String?)
        do {
            (person, laterEmail) = try await mappingDatabaseErrors {
                try await pool.run { [directory] connection in
                    let mayJoin = try directory.isMember(
                        email, of: EnvironmentID(rawValue: identity.environment), on: &connection)
                    let person = try PersonBinding.person(
                        identity, email: email, mayJoin: mayJoin, from: address, on: &connection)
                    guard email != person.email, mayJoin else { return (.person(person), nil) }
                    let others = try People.objects(of: [email], in: person.environment, on: &connection)
                    return (.person(person), others.isEmpty ? email : nil)
                }
            }
        } catch let refusal as BindingRefusal {
            let problem = Problems.refused(refusal)
            try await audit(problem, subject, email: email, from: address)
            throw problem
        }
        cache.withLock { cache in
            if cache.count >= Self.cachedCountMax { cache.removeAll() }
            cache[subject] = CachedCaller(
                caller: person, email: email, laterEmail: laterEmail, until: now + Self.cachedSecondsMax)
        }
        return (person, laterEmail)
    }

    private func audit(_ problem: Problem, _ subject: Subject, email: String, from address: String) async throws {
        let isNew = audited.withLock { audited in
            if audited.count >= Self.cachedCountMax { audited.removeAll() }
            return audited.insert(subject).inserted
        }
        guard isNew else { return }
        let record = AuditRecord(
            actor: email, action: .refused, subject: "\(subject.issuer) \(subject.subject)",
            detail: JSONBytes(JSONObject.bytes(of: [("problem", JSONText.string(problem.type)[...])])),
            address: address)
        try await mappingDatabaseErrors {
            try await pool.run { connection in
                _ = try connection.run(AuditRecord.insert([record], in: EnvironmentID(rawValue: subject.environment)))
            }
        }
    }

    private func integration(key: String, from address: String) async throws -> Login {
        var caller: Caller?
        if IntegrationKey.isShaped(key) {
            let hash = Data(SHA256.hash(data: Array(key.utf8)))
            caller = try await mappingDatabaseErrors { try await directory.integration(keyHash: hash) }
        }
        guard let caller else {
            logger.info("integration key rejected", metadata: ["address": "\(address)"])
            throw Problems.keyUnknown
        }
        try checkNotMoved(caller.environment)
        return Login(
            caller: caller, expires: Timestamp.now().secondsSinceEpoch + Self.keySecondsMax, address: address)
    }
}

/// Runs `body`. If the database is unavailable, it throws a problem with `Retry-After`.
func mappingDatabaseErrors<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
    do {
        return try await body()
    } catch let error as PostgresError where error.isRetriable || error.isTimelineChange {
        throw Problems.databaseUnavailable
    }
}
