import Model
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
    struct Stored {
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
    static func forEachPage(
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
        switch sort {
        case .clientSecrets: load("access.provider", "client_secret", after: last.environment)
        case .backendPasswords: load("backend.connection", "password", after: last.environment)
        case .defectAccounts: load("backend.defect_tracker", "secret", after: last.environment)
        case .webhookSecrets: load("backend.delivery", "webhook_secret", after: last.environment)
        case .mailPasswords: load("backend.delivery", "smtp_password", after: last.environment)
        case .pushKeys: load("backend.delivery", "push_key", after: last.environment)
        case .ownDefectLogins:
            """
            SELECT environment_id, realm_id::bigint AS number, realm_id, secret FROM backend.defect_account
            WHERE (environment_id, realm_id) > (\(last.environment), \(last.number))
            ORDER BY environment_id, realm_id LIMIT \(pageCountMax)
            """
        case .refreshTokens:
            """
            SELECT environment_id, id, person_id, token FROM onboarding.refresh_token
            WHERE (environment_id, id) > (\(last.environment), \(last.number)) AND revoked_at IS NULL
            ORDER BY environment_id, id LIMIT \(pageCountMax)
            """
        }
    }

    /// Returns the statement that stores re-encrypted secrets, except those that changed concurrently.
    static func save(_ sort: Sort, _ changes: [(stored: Stored, sealed: Bytea)]) -> Statement {
        let environments = changes.map(\.stored.environment.rawValue)
        let (old, new) = (changes.map(\.stored.sealed), changes.map(\.sealed))
        switch sort {
        case .clientSecrets: return save("access.provider", "client_secret", environments, old, new)
        case .backendPasswords: return save("backend.connection", "password", environments, old, new)
        case .defectAccounts: return save("backend.defect_tracker", "secret", environments, old, new)
        case .webhookSecrets: return save("backend.delivery", "webhook_secret", environments, old, new)
        case .mailPasswords: return save("backend.delivery", "smtp_password", environments, old, new)
        case .pushKeys: return save("backend.delivery", "push_key", environments, old, new)
        case .ownDefectLogins:
            return """
                UPDATE backend.defect_account a SET secret = c.new
                FROM unnest(\(environments), \(changes.map(\.stored.person)), \(old), \(new))
                    AS c(environment_id, realm_id, old, new)
                WHERE a.environment_id = c.environment_id AND a.realm_id = c.realm_id AND a.secret = c.old
                """
        case .refreshTokens:
            return """
                UPDATE onboarding.refresh_token t SET token = c.new
                FROM unnest(\(environments), \(changes.map(\.stored.number)), \(old), \(new))
                    AS c(environment_id, id, old, new)
                WHERE t.environment_id = c.environment_id AND t.id = c.id AND t.token = c.old
                """
        }
    }

    /// Selects secrets of a table with at most one row for each environment.
    private static func load(_ table: StaticString, _ column: StaticString, after last: Int32) -> Statement {
        """
        SELECT environment_id, 0::bigint, 0, \(sql: column) FROM \(sql: table)
        WHERE environment_id > \(last) AND \(sql: column) IS NOT NULL
        ORDER BY environment_id LIMIT \(pageCountMax)
        """
    }

    private static func save(
        _ table: StaticString, _ column: StaticString, _ environments: [Int32], _ old: [Bytea], _ new: [Bytea]
    ) -> Statement {
        """
        UPDATE \(sql: table) t SET \(sql: column) = c.new
        FROM unnest(\(environments), \(old), \(new)) AS c(environment_id, old, new)
        WHERE t.environment_id = c.environment_id AND t.\(sql: column) = c.old
        """
    }
}
