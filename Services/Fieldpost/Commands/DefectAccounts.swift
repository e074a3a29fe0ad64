import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What people are told of their own logins of a tracker (`DefectAccount`), when these go together with something else.
enum DefectAccounts {
    /// Realms looked at by one statement.
    private static let pageCountMax: Int64 = 500
    /// Writes begun again because somebody else was faster: what they wrote is newer.
    private static let roundsMax = 8

    /// Has everybody's be checked again.
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

    /// Has those of people be checked again who have these addresses.
    static func recheck(_ emails: [String], in environment: EnvironmentID, on connection: inout Connection) throws {
        var directory = RealmDirectory()
        let realms = try directory.ids(
            of: Set(emails.compactMap { try? RealmPath.user($0) }), in: environment, create: false, on: &connection)
        try recheck(Array(realms.values), in: environment, on: &connection)
    }

    /// They become `unchecked`: `defect-submitter` hears of that, and says what is missing.
    private static func recheck(
        _ realms: [Int32], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        let unchecked = try CanonicalJSON(#"{"reason": null, "status": "unchecked"}"#)
        for _ in 0..<roundsMax {
            let accounts = try RealmObject.byKey(
                connection.run(RealmObject.load(.defectAccount, realms: realms, in: environment))
            ).values
            var batch = WriteBatch(environment: environment)
            for (decision, account) in accounts.enumerated() {
                let status = try? account.decoded(as: DefectAccount.self, by: JSONDecoder())?.status
                if status != .unchecked { try batch.patch(account, unchecked, decision: decision) }
            }
            if try batch.commit(on: &connection).missed.isEmpty { return }
        }
        throw CommandFailure("people's logins changed meanwhile, again and again; say it once more")
    }
}
