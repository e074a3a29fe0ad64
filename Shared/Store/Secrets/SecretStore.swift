package import Model
import ObjectStore
package import Postgres

/// The SQL of stored secrets: re-encryption and checks, page by page.
package enum SecretStore {
    /// A category of secrets. The raw values are stored in move archives and must not change.
    package enum Sort: String, CaseIterable {
        case clientSecrets = "client secrets"
        case backendPasswords = "back ends' passwords"
        case defectAccounts = "defects' accounts"
        case ownDefectLogins = "people's own logins of defects"
        case webhookSecrets = "webhooks' secrets"
        case mailPasswords = "mail servers' passwords"
        case pushKeys = "keys for push services"
        case appleKeys = "keys for APNs"
        case firebaseAccounts = "service accounts for FCM"
        case refreshTokens = "refresh tokens"
    }

    /// The results for the secrets of one category.
    package struct Count: Encodable {
        package let sort: String
        package var sealed = 0
        package var current = 0
        package var unreadable = 0
    }

    /// The key of a row and its sealed secret.
    package struct Stored {
        package let environment: EnvironmentID
        /// A refresh token's number and person; for a personal login, `person` is the number of the realm.
        package var number: Int64 = 0
        package var person: Int32 = 0
        package let sealed: Bytea

        package func context(_ sort: Sort) -> String {
            switch sort {
            case .clientSecrets: SecretContext.clientSecret(environment)
            case .backendPasswords: SecretContext.backendPassword(environment)
            case .defectAccounts: SecretContext.defectAccount(environment)
            case .ownDefectLogins: SecretContext.personalDefectLogin(environment, realm: person)
            case .webhookSecrets: SecretContext.delivery(.webhook, in: environment)
            case .mailPasswords: SecretContext.delivery(.mail, in: environment)
            case .pushKeys: SecretContext.delivery(.push, in: environment)
            case .appleKeys: SecretContext.delivery(.apns, in: environment)
            case .firebaseAccounts: SecretContext.delivery(.fcm, in: environment)
            case .refreshTokens: SecretContext.refreshToken(environment, person: person)
            }
        }
    }

    package static let pageCountMax: Int64 = 500

    /// Re-encrypts the secrets of a category that were not sealed with the first key, one transaction per page.
    package static func seal(_ sort: Sort, with secrets: SecretBox, on connection: inout Connection) throws -> Count {
        var count = Count(sort: sort.rawValue)
        try forEachPage(of: sort, on: &connection) { page, connection in
            var changes: [(stored: Stored, sealed: Bytea)] = []
            for stored in page {
                if secrets.isCurrent(stored.sealed.bytes) {
                    count.current += 1
                    continue
                }
                do throws(SecretBox.Failure) {
                    let secret = try secrets.open(stored.sealed.bytes, at: stored.context(sort))
                    changes.append((stored, Bytea(try secrets.seal(secret, at: stored.context(sort)))))
                } catch {
                    count.unreadable += 1
                }
            }
            if !changes.isEmpty { count.sealed += try connection.run(save(sort, changes)).affectedCount }
        }
        return count
    }

    /// Counts a category's secrets and those that cannot be opened; changes nothing.
    package static func counts(
        of sort: Sort, with secrets: SecretBox, on connection: inout Connection
    ) throws -> (count: Int, unreadable: Int) {
        var (count, unreadable) = (0, 0)
        try forEachPage(of: sort, on: &connection) { page, _ in
            count += page.count
            unreadable += page.count { (try? secrets.open($0.sealed.bytes, at: $0.context(sort))) == nil }
        }
        return (count, unreadable)
    }

    /// - Parameter only: Restricts the scan to one environment.
    private static func forEachPage(
        of sort: Sort, in only: EnvironmentID? = nil, on connection: inout Connection,
        _ body: ([Stored], inout Connection) throws -> Void
    ) throws {
        var last = (environment: Int32.min, number: Int64.min)
        if let only { last = (only.rawValue - 1, Int64.max) }
        while true {
            let page = try connection.run(load(sort, after: last))
                .decode(EnvironmentID.self, Int64.self, Int32.self, Bytea.self)
                .map { Stored(environment: $0, number: $1, person: $2, sealed: $3) }
            guard let newest = page.last else { return }
            last = (newest.environment.rawValue, newest.number)
            try body(page.filter { only == nil || $0.environment == only }, &connection)
            if let only, newest.environment != only { return }
        }
    }

    /// Rows: environment, number, person, secret.
    private static func load(_ sort: Sort, after last: (environment: Int32, number: Int64)) -> Statement {
        let location = sort.location
        return """
            SELECT t.environment_id, \(sql: location.number)::bigint, \(sql: location.person), t.\(sql: location.column)
            FROM \(sql: location.table) t
            WHERE (t.environment_id, \(sql: location.number)) > (\(last.environment), \(last.number))
                AND t.\(sql: location.column) IS NOT NULL AND \(sql: location.condition)
            ORDER BY t.environment_id, \(sql: location.number) LIMIT \(pageCountMax)
            """
    }

    /// Returns the statement that stores re-encrypted secrets, except those that changed concurrently.
    private static func save(_ sort: Sort, _ changes: [(stored: Stored, sealed: Bytea)]) -> Statement {
        let location = sort.location
        return """
            UPDATE \(sql: location.table) t SET \(sql: location.column) = c.new
            FROM unnest(\(changes.map(\.stored.environment)), \(changes.map(\.stored.number)),
                \(changes.map(\.stored.sealed)), \(changes.map(\.sealed))) AS c(environment_id, number, old, new)
            WHERE t.environment_id = c.environment_id AND \(sql: location.number) = c.number
                AND t.\(sql: location.column) = c.old
            """
    }

    // MARK: Moves

    /// Returns the context of a secret in transit, where it is sealed with the transfer's key.
    package static func place(_ sort: Sort, number: Int64, person: Int32, on move: String) -> String {
        "move/\(move)/\(sort.rawValue)/\(number)/\(person)"
    }

    /// Decrypts the secrets of one category of an environment that moves to an installation with other keys, and passes
    /// each to `body`.
    ///
    /// - Throws: `SecretBox.Failure` if a secret cannot be opened: the environment would not work at the target.
    package static func forEachSecret(
        _ sort: Sort, of environment: EnvironmentID, with secrets: SecretBox, on connection: inout Connection,
        _ body: (_ stored: Stored, _ secret: [UInt8]) throws -> Void
    ) throws {
        try forEachPage(of: sort, in: environment, on: &connection) { page, _ in
            for stored in page { try body(stored, secrets.open(stored.sealed.bytes, at: stored.context(sort))) }
        }
    }

    /// Returns the statement that replaces a row's copied secret by one that is sealed with the local keys.
    package static func replace(
        _ stored: Bytea, by secret: [UInt8], _ sort: Sort, number: Int64, person: Int32,
        of environment: EnvironmentID, with secrets: SecretBox
    ) throws -> Statement {
        let row = Stored(environment: environment, number: number, person: person, sealed: stored)
        return save(sort, [(row, Bytea(try secrets.seal(secret, at: row.context(sort))))])
    }
}

extension SecretStore.Sort {
    /// The table and column of secrets. `number` and `person` are expressions of a row `t`: constants in a table with
    /// at most one row for each environment.
    fileprivate struct SecretColumn {
        let table: StaticString
        let column: StaticString
        var number: StaticString = "0::bigint"
        var person: StaticString = "0"
        /// The condition of rows in use.
        var condition: StaticString = "true"
    }

    fileprivate var location: SecretColumn {
        switch self {
        case .clientSecrets: SecretColumn(table: "access.provider", column: "client_secret")
        case .backendPasswords: SecretColumn(table: "backend.connection", column: "password")
        case .defectAccounts: SecretColumn(table: "backend.defect_tracker", column: "secret")
        case .ownDefectLogins:
            SecretColumn(table: "backend.defect_account", column: "secret", number: "t.realm_id", person: "t.realm_id")
        case .webhookSecrets: SecretColumn(table: "backend.delivery", column: "webhook_secret")
        case .mailPasswords: SecretColumn(table: "backend.delivery", column: "smtp_password")
        case .pushKeys: SecretColumn(table: "backend.delivery", column: "push_key")
        case .appleKeys: SecretColumn(table: "backend.delivery", column: "apns_key")
        case .firebaseAccounts: SecretColumn(table: "backend.delivery", column: "fcm_account")
        case .refreshTokens:
            SecretColumn(
                table: "onboarding.refresh_token", column: "token", number: "t.id", person: "t.person_id",
                condition: "t.revoked_at IS NULL")
        }
    }
}
