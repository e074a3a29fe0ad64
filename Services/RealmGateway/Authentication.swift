import HTTPTypes
import Logging
import Model
import Postgres
import Runtime
import Synchronization

/// Turns a request's bearer token into a person of an environment.
final class Authentication: Sendable {
    /// Who asks, and until when the token is good (seconds since 1970).
    struct Caller: Sendable {
        let person: Person
        let expires: Int64
    }

    private struct Login: Hashable {
        let environment: Int32
        let issuer: String
        let subject: String
    }

    private static let cachedCountMax = 50_000

    private let verifier: TokenVerifier
    private let directory: EnvironmentDirectory
    private let pool: Pool
    private let logger: Logger
    private let known = Mutex<[Login: Person]>([:])

    init(verifier: TokenVerifier, directory: EnvironmentDirectory, pool: Pool, logger: Logger) {
        self.verifier = verifier
        self.directory = directory
        self.pool = pool
        self.logger = logger
    }

    /// - Throws: `Problem` with 401, 403 or 503.
    func caller(_ headers: HTTPFields) async throws -> Caller {
        guard let value = headers[.authorization], let token = Self.token(in: value) else {
            throw Problems.tokenMissing
        }
        let identity: Identity
        do {
            identity = try await verifier.identity(of: token)
        } catch let error as TokenError {
            logger.info("token refused", metadata: ["reason": "\(error)"])
            throw error.problem
        }
        return Caller(person: try await person(identity), expires: identity.expires)
    }

    private static func token(in value: String) -> String? {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }

    private func person(_ identity: Identity) async throws -> Person {
        let login = Login(environment: identity.environment, issuer: identity.issuer, subject: identity.subject)
        if let person = known.withLock({ $0[login] }) { return person }
        let mayJoin = directory.isMember(identity.email, of: EnvironmentID(rawValue: identity.environment))
        let person = try await answering {
            try await pool.run { connection in
                try PersonBinding.person(identity, mayJoin: mayJoin, on: &connection)
            }
        }
        known.withLock { known in
            if known.count >= Self.cachedCountMax { known.removeAll() }
            known[login] = person
        }
        return person
    }
}

/// Runs `body`; a database that does not answer becomes a problem the client may retry after.
func answering<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
    do {
        return try await body()
    } catch let error as PostgresError where error.isRetriable {
        throw Problems.databaseUnavailable
    }
}
