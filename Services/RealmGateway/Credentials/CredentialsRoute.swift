import Access
import BackendConnections
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import ObjectStore
import Postgres
import Secrets

/// `PUT` and `DELETE /v1/credentials/compass`: the login with which a person's commands are executed.
///
/// The secret is encrypted first. No back end is called: the person's `DefectAccount` becomes `unchecked`, and
/// `defect-submitter` verifies it.
struct CredentialsRoute: Sendable {
    /// Maximum number of optimistic-concurrency retries before 503.
    private static let attemptsMax = 8

    let authentication: Authentication
    let pool: Pool
    let numbers: RealmNumbers
    let secrets: SecretBox

    /// The owner of a login.
    private struct Owner: Sendable {
        let environment: EnvironmentID
        let realm: RealmPath
        let object: UUID
    }

    @concurrent func put(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let owner = try await owner(request, context)
        let login = try CompassLogin(try await JSONBody.read(request, bytesMax: CompassLogin.bytesMax))
        guard secrets.canSeal else { throw Problems.credentialsUnavailable }
        try await write(owner) { [secrets] key, batch in
            let context = SecretContext.personalDefectLogin(owner.environment, realm: key.realm)
            let own = OwnDefectLogin(user: login.user, sealed: Bytea(try secrets.seal(login.secret, at: context)))
            let account = DefectAccount(status: .unchecked, user: login.user, storedAt: .now())
            batch.put(key, try CanonicalJSON(encoding: account), decision: 0)
            for statement in own.save(of: key.realm, in: owner.environment, decision: 0) { batch.append(statement) }
        }
        return Response(status: .noContent)
    }

    @concurrent func delete(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let owner = try await owner(request, context)
        try await write(owner) { key, batch in
            batch.delete(key, decision: 0)
            batch.append(OwnDefectLogin.remove(of: key.realm, in: owner.environment, decision: 0))
        }
        return Response(status: .noContent)
    }

    private func owner(_ request: Request, _ context: EdgeContext) async throws -> Owner {
        let caller = try await authentication.login(request, context).caller
        guard let realm = caller.own, let object = caller.object else { throw Problems.personOnly }
        return Owner(environment: caller.environment, realm: realm, object: object)
    }

    /// Writes a person's account, and its related rows, in one transaction.
    private func write(
        _ owner: Owner, _ fill: @escaping @Sendable (ObjectKey, inout WriteBatch) throws -> Void
    ) async throws {
        do {
            try await mappingDatabaseErrors {
                try await pool.run { [numbers] connection in
                    let realm = try numbers.number(of: owner.realm, in: owner.environment, on: &connection)
                    let key = ObjectKey(realm: realm, kind: .defectAccount, id: owner.object)
                    for _ in 0..<Self.attemptsMax {
                        let rows = try connection.run(Presence.load([key], in: owner.environment))
                        var batch = WriteBatch(environment: owner.environment)
                        batch.expect(key, at: try Presence.byKey(rows)[key]?.position ?? 0, decision: 0)
                        try fill(key, &batch)
                        if try batch.commit(on: &connection).conflicts.isEmpty { return }
                    }
                    throw Problems.busy
                }
            }
        } catch let error as PostgresError where error.isMissingTable {
            // The table exists since schema 23.
            throw Problems.databaseUnavailable
        }
    }
}
