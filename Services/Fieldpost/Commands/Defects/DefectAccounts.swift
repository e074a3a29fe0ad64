import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The status of people's own logins of a tracker (`DefectAccount`), reset when the logins become invalid.
enum DefectAccounts {
    /// Maximum number of realms that one statement reads.
    private static let pageCountMax: Int64 = 500
    /// Maximum number of optimistic-concurrency retries.
    private static let attemptsMax = 8

    /// Marks the accounts of all people as unchecked.
    static func recheckAll(in environment: EnvironmentID, on connection: inout Connection) throws {
        var last: Int32 = -1
        while true {
            let realms = try connection.run(
                """
                SELECT id FROM realm.realm WHERE environment_id = \(environment.rawValue) AND id > \(last)
                ORDER BY id LIMIT \(pageCountMax)
                """
            ).decode(Int32.self)
            guard let newest = realms.last else { return }
            last = newest
            try recheck(realms, in: environment, on: &connection)
        }
    }

    /// Marks the accounts of people with these addresses as unchecked.
    static func recheck(_ emails: [String], in environment: EnvironmentID, on connection: inout Connection) throws {
        var directory = RealmDirectory()
        let realms = try directory.ids(
            of: Set(emails.compactMap { try? RealmPath.user($0) }), in: environment, create: false, on: &connection)
        try recheck(Array(realms.values), in: environment, on: &connection)
    }

    /// Sets the status `unchecked`: `defect-submitter` receives the change, and checks the login.
    private static func recheck(
        _ realms: [Int32], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        let unchecked = try CanonicalJSON(#"{"reason": null, "status": "unchecked"}"#)
        for _ in 0..<attemptsMax {
            let accounts = try RealmObject.byKey(
                connection.run(RealmObject.load(.defectAccount, realms: realms, in: environment))
            ).values
            var batch = WriteBatch(environment: environment)
            for (decision, account) in accounts.enumerated() {
                let status = try? account.decoded(as: DefectAccount.self, by: JSONDecoder())?.status
                if status != .unchecked { try batch.patch(account, unchecked, decision: decision) }
            }
            if try batch.commit(on: &connection).conflicts.isEmpty { return }
        }
        throw CommandFailure("conflict: people's logins changed \(attemptsMax) times meanwhile; run the command again")
    }
}
