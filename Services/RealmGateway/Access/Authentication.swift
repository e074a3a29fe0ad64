import Access
import Audit
import Crypto
import Essentials
import FoundationEssentials
import HTTPClient
import HTTPServer
import Hummingbird
import Identity
import Logging
import Model
import ObjectStore
import Postgres
import Synchronization
import Tenants

/// A caller who came in.
struct Login: Sendable {
    let caller: Caller
    /// A person's address at the identity provider by now, where that is another than at their first login, belongs to
    /// the organisation, and is nobody else's here.
    var laterEmail: String?
    /// Until when the token is taken, in seconds since 1970: then a request with it is refused, and a stream ends.
    let expires: Int64
    /// Where the request comes from.
    let address: String
}

/// Turns a request's bearer token into a person of an environment, or an integration.
final class Authentication: Sendable {
    private struct Known: Hashable {
        let environment: Int32
        let issuer: String
        let subject: String
    }

    private static let cachedCountMax = 50_000
    private static let cachedSecondsMax: Int64 = 60
    /// A stream that was opened with a key, which has no end of its own, ends after this.
    private static let keySecondsMax: Int64 = 86_400

    private let verifier: TokenVerifier
    private let directory: EnvironmentDirectory
    private let pool: Pool
    private let clients: ClientAddress
    private let logger: Logger
    /// Who was found for a token.
    private struct Found {
        let caller: Caller
        /// The token's address.
        let email: String
        let laterEmail: String?
        let until: Int64
    }

    /// Asked for again after a while, since an account may have been unbound, and when the address is another.
    private let known = Mutex<[Known: Found]>([:])
    /// Who was refused: the audit log tells it once.
    private let refused = Mutex<Set<Known>>([])

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
            try refuseMoved(EnvironmentID(rawValue: identity.environment))
            let (caller, laterEmail) = try await caller(identity, from: address)
            return Login(
                caller: caller, laterEmail: laterEmail, expires: verifier.end(of: identity), address: address)
        } catch let error as TokenError {
            logger.info("token refused", metadata: ["reason": "\(error)", "address": "\(address)"])
            throw error.problem
        }
    }

    /// An environment that has moved to another installation is not served here any more.
    private func refuseMoved(_ environment: EnvironmentID) throws(Problem) {
        if let url = directory.whereTo(environment) { throw Problem.environmentMoved(to: url) }
    }

    private static func token(in value: String) -> String? {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
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
        let known = Known(environment: identity.environment, issuer: identity.issuer, subject: identity.subject)
        let now = Timestamp.now().secondsSinceEpoch
        if let found = self.known.withLock({ $0[known] }), found.email == email, now < found.until {
            return (found.caller, found.laterEmail)
        }
        let (person, laterEmail): (Caller, String?)
        do {
            (person, laterEmail) = try await answering {
                try await pool.run { [directory] connection in
                    let mayJoin = try directory.isMember(
                        email, of: EnvironmentID(rawValue: identity.environment), on: &connection)
                    let person = try PersonBinding.person(
                        identity, email: email, mayJoin: mayJoin, from: address, on: &connection)
                    guard email != person.email, mayJoin else { return (Caller(person), nil) }
                    let others = try People.objects(of: [email], in: person.environment, on: &connection)
                    return (Caller(person), others.isEmpty ? email : nil)
                }
            }
        } catch let refusal as BindingRefusal {
            let problem = Problems.refused(refusal)
            try await tell(of: problem, known, email: email, from: address)
            throw problem
        }
        self.known.withLock { cache in
            if cache.count >= Self.cachedCountMax { cache.removeAll() }
            cache[known] = Found(
                caller: person, email: email, laterEmail: laterEmail, until: now + Self.cachedSecondsMax)
        }
        return (person, laterEmail)
    }

    private func tell(of problem: Problem, _ known: Known, email: String, from address: String) async throws {
        let isNew = refused.withLock { refused in
            if refused.count >= Self.cachedCountMax { refused.removeAll() }
            return refused.insert(known).inserted
        }
        guard isNew else { return }
        let record = AuditRecord(
            actor: email, action: .refused, subject: "\(known.issuer) \(known.subject)",
            detail: JSONBytes("{\"problem\":\"\(problem.type)\"}"), address: address)
        try await answering {
            try await pool.run { connection in
                _ = try connection.run(AuditRecord.insert([record], in: EnvironmentID(rawValue: known.environment)))
            }
        }
    }

    private func integration(key: String, from address: String) async throws -> Login {
        var found: Caller?
        if IntegrationKey.isShaped(key) {
            let hash = Data(SHA256.hash(data: Array(key.utf8)))
            found = try await answering { try await directory.integration(keyHash: hash) }
        }
        guard let found else {
            logger.info("integration key refused", metadata: ["address": "\(address)"])
            throw Problems.keyUnknown
        }
        try refuseMoved(found.environment)
        return Login(
            caller: found, expires: Timestamp.now().secondsSinceEpoch + Self.keySecondsMax, address: address)
    }
}

/// Runs `body`; a database that does not answer becomes a problem the client may retry after.
func answering<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
    do {
        return try await body()
    } catch let error as PostgresError where error.isRetriable || error.isOfOtherHistory {
        throw Problems.databaseUnavailable
    }
}
