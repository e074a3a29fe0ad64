import BackendConnections
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport

@testable import DefectNotifier

/// People's own logins in a test environment.
enum OwnLoginFixture {
    /// Returns the id of a login's `DefectAccount`.
    private static func accountID(_ user: String) -> UUID {
        TrackerIDs(server: "", repository: "", database: "").id("account", user)
    }

    /// Stores a login as the gateway does, with its status.
    static func store(
        _ user: String, password: String = "secret", status: DefectAccount.Status = .good, of email: String,
        in acme: inout TestEnvironment
    ) throws {
        let realm = try acme.realm(.user(email))
        let secrets = try SecretBox([CompassWorld.secretKey])
        let context = SecretContext.personalDefectLogin(acme.id, realm: realm)
        let login = OwnDefectLogin(user: user, sealed: Bytea(try secrets.seal(password, at: context)))
        let account = DefectAccount(status: status, user: user, storedAt: .now())
        var batch = WriteBatch(environment: acme.id)
        let key = ObjectKey(realm: realm, kind: .defectAccount, id: accountID(email))
        batch.put(key, try CanonicalJSON(encoding: account), decision: 0)
        for statement in login.save(of: realm, in: acme.id, decision: 0) { batch.append(statement) }
        _ = try batch.commit(on: &acme.connection)
    }

    static func account(of email: String, in acme: inout TestEnvironment) throws -> DefectAccount? {
        let key = ObjectKey(realm: try acme.realm(.user(email)), kind: .defectAccount, id: accountID(email))
        let rows = try acme.connection.run(RealmObject.load([key], in: acme.id))
        return try RealmObject.byKey(rows)[key]?.decoded(as: DefectAccount.self, by: JSONDecoder())
    }
}

extension NotifierWorld {
    /// Makes a world without an account, in which each person has an own login.
    static func withOwnLogins(people: [String: String] = people, now: Int = 1_780_000_000) throws -> NotifierWorld {
        var world = try NotifierWorld(people: people, now: now)
        try addTracker(to: &world.acme, hasAccount: false)
        for (login, email) in people { try OwnLoginFixture.store(login, of: email, in: &world.acme) }
        return world
    }

    /// Runs a poll of each person, in random order.
    mutating func completeAll(_ scope: DefectPoll.Scope = .changes, crashing random: inout SplitMix64) throws {
        for login in people.keys.sorted().shuffled(using: &random) {
            try complete(scope, as: login, crashing: &random)
        }
    }

    mutating func completeAll(_ scope: DefectPoll.Scope = .changes) throws {
        for login in people.keys.sorted() { try complete(scope, as: login) }
    }
}
