import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// `fieldpost environment unbind`: another account of the same person.
@Suite(.ownThreads) struct UnbindTests {
    private let conninfo: String

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try EnvironmentRows(id: 1, provider: .init(issuer: "http://idp")).insert(on: &connection)
        try EnvironmentRows(id: 2, name: "other", provider: .init(issuer: "http://idp2")).insert(on: &connection)
        try connection.run([
            """
            INSERT INTO access.person (environment_id, email, issuer, subject, bound_at)
            SELECT 1, 'p' || n || '@example.com', 'http://idp', n::text, now() FROM generate_series(1, 1200) n
            """,
            """
            INSERT INTO access.person (environment_id, email, issuer, subject, bound_at)
            VALUES (2, 'p1@example.com', 'http://idp2', '1', now())
            """,
        ])
    }

    private func unbind(_ arguments: String...) throws -> CommandResult {
        try fieldpost(["environment", "unbind"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func bound(_ environment: Int32) throws -> Int64 {
        var connection = try Connection(conninfo)
        return try connection.run(
            """
            SELECT count(*) FROM access.person WHERE environment_id = \(environment) AND subject IS NOT NULL
            """)[0].value(0)
    }

    @Test func namedPersonIsUnbound() throws {
        let result = try unbind("acme", "P7@example.com")
        #expect(result.status == 0 && result.output == "1 person unbound\n", "\(result.errors)")
        #expect(try bound(1) == 1_199 && bound(2) == 1)
        var connection = try Connection(conninfo)
        let records = try connection.run("SELECT environment_id, action, subject FROM access.audit")
        #expect(records.count == 1)
        #expect(try records[0].value(0, as: Int32.self) == 1 && records[0].value(1, as: String.self) == "login.unbound")
        #expect(try records[0].value(2, as: String.self) == "p7@example.com")
        // A repetition changes nothing.
        #expect(try unbind("acme", "p7@example.com").output == "0 people unbound\n")
    }

    /// The new account must not use the former account's login of the tracker.
    @Test func unbindRemovesOwnDefectLogins() throws {
        var connection = try Connection(conninfo)
        try connection.run([
            """
            INSERT INTO realm.realm (environment_id, id, path)
            SELECT e, n, '/users/p' || n || '@example.com' FROM generate_series(1, 2) e, generate_series(7, 8) n
            """,
            """
            INSERT INTO backend.defect_account (environment_id, realm_id, user_name, secret)
            SELECT e, n, 'p', '\\x01' FROM generate_series(1, 2) e, generate_series(7, 8) n
            """,
        ])
        for number in [Int32(7), 8] { try storeAccount(number, on: &connection) }
        #expect(try unbind("acme", "p7@example.com").status == 0)
        let accounts = try connection.run(
            "SELECT realm_id, fields::json->>'status' FROM store.object WHERE kind = \(Kind.defectAccount) ORDER BY 1"
        ).decode(Int32.self, String.self).map { "\($0) \($1)" }
        #expect(accounts == ["7 unchecked", "8 good"], "the missing login is reported by the next check")
        let left = try connection.run(
            "SELECT environment_id, realm_id FROM backend.defect_account ORDER BY environment_id, realm_id"
        ).decode(Int32.self, Int32.self).map { "\($0) \($1)" }
        #expect(left == ["1 8", "2 7", "2 8"])
    }

    private func storeAccount(_ realm: Int32, on connection: inout Connection) throws {
        var batch = WriteBatch(environment: EnvironmentID(rawValue: 1))
        let account = DefectAccount(status: .good, user: "p", storedAt: Timestamp(millisecondsSinceEpoch: 0))
        let key = ObjectKey(realm: realm, kind: .defectAccount, id: UUID())
        batch.put(key, try CanonicalJSON(encoding: account), decision: 0)
        _ = try batch.commit(on: &connection)
    }

    @Test func unbindAllIsLimitedToEnvironment() throws {
        #expect(try unbind("acme", "--all").output == "1200 people unbound\n")
        #expect(try bound(1) == 0 && bound(2) == 1)
    }

    @Test func unbindRequiresSelection() throws {
        #expect(try unbind("acme").status == 2)
        #expect(try unbind("acme", "--all", "p1@example.com").status == 2)
        #expect(try unbind("nowhere", "--all").errors.contains("environment nowhere does not exist"))
        #expect(try unbind("acme", "eve@example.com").errors.contains("eve@example.com is not one of the"))
    }
}
