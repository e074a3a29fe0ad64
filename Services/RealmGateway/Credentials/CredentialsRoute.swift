import Access
import BackendConnections
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Identity
import Model
import ObjectStore
import Postgres
import Secrets

/// `PUT` and `DELETE /v1/credentials/compass`: the login with which a person's commands are done.
///
/// The secret is sealed before anything else is done with it. Nobody is called: the person's `DefectAccount` becomes
/// `unchecked`, and `defect-submitter` checks it.
struct CredentialsRoute: Sendable {
    /// Writes begun again because somebody else was faster; then the device is told to come again.
    private static let roundsMax = 8

    let authentication: Authentication
    let pool: Pool
    let numbers: RealmNumbers
    let secrets: SecretBox

    /// Whose login it is.
    private struct Person: Sendable {
        let environment: EnvironmentID
        let realm: RealmPath
        let object: UUID
    }

    @concurrent func put(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let person = try await person(request, context)
        let login = try CompassLogin(try await JSONBody.read(request, bytesMax: CompassLogin.bytesMax))
        guard secrets.canSeal else { throw Problems.credentialsUnavailable }
        try await write(person) { [secrets] key, batch in
            let place = SecretContext.personalDefectLogin(person.environment, realm: key.realm)
            let own = OwnDefectLogin(user: login.user, sealed: Bytea(try secrets.seal(login.secret, at: place)))
            let account = DefectAccount(status: .unchecked, user: login.user, storedAt: .now)
            batch.put(key, try CanonicalJSON(encoding: account), decision: 0)
            for statement in own.save(of: key.realm, in: person.environment, decision: 0) { batch.also(statement) }
        }
        return Response(status: .noContent)
    }

    @concurrent func delete(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let person = try await person(request, context)
        try await write(person) { key, batch in
            batch.delete(key, decision: 0)
            batch.also(OwnDefectLogin.remove(of: key.realm, in: person.environment, decision: 0))
        }
        return Response(status: .noContent)
    }

    private func person(_ request: Request, _ context: EdgeContext) async throws -> Person {
        let caller = try await authentication.login(request, context).caller
        guard let realm = caller.own, let object = caller.object else { throw Problems.personOnly }
        return Person(environment: caller.environment, realm: realm, object: object)
    }

    /// Writes a person's account, and what belongs to it, in one transaction.
    private func write(
        _ person: Person, _ fill: @escaping @Sendable (ObjectKey, inout WriteBatch) throws -> Void
    ) async throws {
        do {
            try await answering {
                try await pool.run { [numbers] connection in
                    let realm = try numbers.number(of: person.realm, in: person.environment, on: &connection)
                    let key = ObjectKey(realm: realm, kind: .defectAccount, id: person.object)
                    for _ in 0..<Self.roundsMax {
                        let rows = try connection.run(Presence.load([key], in: person.environment))
                        var batch = WriteBatch(environment: person.environment)
                        batch.expect(key, at: try Presence.byKey(rows)[key]?.position ?? 0, decision: 0)
                        try fill(key, &batch)
                        if try batch.commit(on: &connection).missed.isEmpty { return }
                    }
                    throw Problems.busy
                }
            }
        } catch let error as PostgresError where error.isOfMissingTable {
            // Until schema 23 there is no place for it.
            throw Problems.databaseUnavailable
        }
    }
}
