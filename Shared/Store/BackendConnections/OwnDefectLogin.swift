package import BackendProtocol
package import Compass
package import Model
internal import ObjectStore
package import Postgres
package import Secrets

/// A person's own login to their environment's defect tracker, as stored in `backend.defect_account`. Their commands
/// run with it.
package struct OwnDefectLogin: Sendable, Equatable {
    /// The login name; `nil` with a personal access token.
    package let user: String?
    /// The password or the token, sealed for `SecretContext.personalDefectLogin`.
    package let sealed: Bytea

    package init(user: String?, sealed: Bytea) {
        self.user = user
        self.sealed = sealed
    }

    /// Opens the secret.
    ///
    /// - Throws: `MissingBackend` if no key opens the secret.
    package func account(
        of realm: Int32, in environment: EnvironmentID, _ secrets: SecretBox
    ) throws(MissingBackend) -> CompassAccount {
        let secret: String
        do {
            secret = try secrets.openText(
                sealed.bytes, at: SecretContext.personalDefectLogin(environment, realm: realm))
        } catch {
            throw MissingBackend("cannot open the secret of a person's own login: \(error)")
        }
        return user.map { .password(user: $0, password: secret) } ?? .personalAccessToken(secret)
    }

    // MARK: Storing

    /// Selects the logins of some realms. Rows: as read by ``byRealm(_:)``.
    package static func load(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, user_name, secret FROM backend.defect_account
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        """
    }

    /// Decodes the rows of ``load(_:in:)`` by realm number.
    package static func byRealm(_ rows: Rows) throws(PostgresError) -> [Int32: OwnDefectLogin] {
        var logins: [Int32: OwnDefectLogin] = [:]
        for (realm, user, sealed) in try rows.decode(Int32.self, String?.self, Bytea.self) {
            logins[realm] = OwnDefectLogin(user: user, sealed: sealed)
        }
        return logins
    }

    /// Inserts or replaces the login as part of a decision of a `WriteBatch`. It deletes first, because an update needs
    /// the right to read secrets.
    package func save(of realm: Int32, in environment: EnvironmentID, decision: Int) -> [Statement] {
        [Self.remove(of: realm, in: environment, decision: decision), insert(realm, environment, decision)]
    }

    private func insert(_ realm: Int32, _ environment: EnvironmentID, _ decision: Int) -> Statement {
        """
        INSERT INTO backend.defect_account (environment_id, realm_id, user_name, secret)
        SELECT \(environment), \(realm), \(user), \(sealed)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Removes the login as part of a decision of a `WriteBatch`.
    package static func remove(of realm: Int32, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM backend.defect_account
        WHERE environment_id = \(environment) AND realm_id = \(realm)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Removes all logins of an environment: they are valid for its current tracker only.
    package static func removeAllLogins(in environment: EnvironmentID) -> Statement {
        "DELETE FROM backend.defect_account WHERE environment_id = \(environment)"
    }

    /// Returns whether the database has the table of logins, which schema 23 creates.
    package static func areKept(on connection: inout Connection) throws(PostgresError) -> Bool {
        try connection.run("SELECT to_regclass('backend.defect_account') IS NOT NULL")[0].decode(Bool.self)
    }

    /// Removes the logins of people who may sign in with another account, by their numbers in `access.person`.
    package static func forget(_ people: [Int32], in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM backend.defect_account a USING access.person p, realm.realm r
        WHERE p.environment_id = \(environment) AND p.id = ANY (\(people))
            AND r.environment_id = p.environment_id AND r.path = '/users/' || p.email
            AND a.environment_id = r.environment_id AND a.realm_id = r.id
        """
    }
}

/// SQL statements for the people with a login of their own, and its status.
extension OwnDefectLogin {
    /// Selects the realms of people who have stored a login. Rows: realm.
    package static func realms(in environment: EnvironmentID) -> Statement {
        "SELECT realm_id FROM backend.defect_account WHERE environment_id = \(environment)"
    }

    /// Selects those of some realms whose login was accepted by the tracker when it was last used. Rows: realm, its
    /// path.
    package static func good(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT r.id, r.path FROM unnest(\(realms)) AS i(realm_id)
        JOIN backend.defect_account a ON a.environment_id = \(environment) AND a.realm_id = i.realm_id
        JOIN realm.realm r ON r.environment_id = a.environment_id AND r.id = a.realm_id
        CROSS JOIN LATERAL (
            SELECT fields FROM store.object
            WHERE environment_id = \(environment) AND realm_id = r.id
                AND kind = \(Kind.defectAccount) AND NOT deleted
            OFFSET 0
        ) o
        WHERE o.fields::json->>'status' = \(DefectAccount.Status.good.rawValue)
        """
    }

    /// Counts the people by the status of their login. Rows: a status of `DefectAccount`, or `none` for people without
    /// a login; count.
    package static func counts(in environment: EnvironmentID) -> Statement {
        """
        SELECT CASE WHEN a.realm_id IS NULL THEN 'none' ELSE coalesce(o.status, 'none') END, count(*)
        FROM access.person p
        LEFT JOIN realm.realm r ON r.environment_id = p.environment_id AND r.path = '/users/' || p.email
        LEFT JOIN backend.defect_account a ON a.environment_id = r.environment_id AND a.realm_id = r.id
        LEFT JOIN LATERAL (
            SELECT fields::json->>'status' AS status FROM store.object
            WHERE environment_id = a.environment_id AND realm_id = a.realm_id
                AND kind = \(Kind.defectAccount) AND NOT deleted
            OFFSET 0
        ) o ON true
        WHERE p.environment_id = \(environment)
        GROUP BY 1
        """
    }
}
