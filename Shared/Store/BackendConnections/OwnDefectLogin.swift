package import BackendProtocol
package import Compass
package import Model
internal import ObjectStore
package import Postgres
package import Secrets

/// A person's own login of their environment's tracker of defects, as `backend.defect_account` has it: what is done at
/// their command is done as them.
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
    /// - Throws: `MissingBackend` when no key opens it.
    package func account(
        of realm: Int32, in environment: EnvironmentID, _ secrets: SecretBox
    ) throws(MissingBackend) -> CompassAccount {
        let secret: String
        do {
            secret = try secrets.openText(
                sealed.bytes, at: SecretContext.personalDefectLogin(environment, realm: realm))
        } catch {
            throw MissingBackend("the secret of a person's own login: \(error)")
        }
        return user.map { .password(user: $0, password: secret) } ?? .personalAccessToken(secret)
    }

    // MARK: Storing

    /// Those of some realms. Rows: as ``byRealm(_:)`` reads them.
    package static func load(_ realms: [Int32], in environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, user_name, secret FROM backend.defect_account
        WHERE environment_id = \(environment) AND realm_id = ANY (\(realms))
        """
    }

    /// The rows of ``load(_:in:)`` by the numbers of their realms.
    package static func byRealm(_ rows: Rows) throws(PostgresError) -> [Int32: OwnDefectLogin] {
        var logins: [Int32: OwnDefectLogin] = [:]
        for (realm, user, sealed) in try rows.decode(Int32.self, String?.self, Bytea.self) {
            logins[realm] = OwnDefectLogin(user: user, sealed: sealed)
        }
        return logins
    }

    /// Stores it in the place of an earlier one, with a decision of a `WriteBatch`. Who does that needs no right to
    /// read secrets, which an update would take.
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

    /// Removes it, with a decision of a `WriteBatch`.
    package static func remove(of realm: Int32, in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM backend.defect_account
        WHERE environment_id = \(environment) AND realm_id = \(realm)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Removes all of an environment: they were given for its tracker, and for no other.
    package static func forgetAll(in environment: EnvironmentID) -> Statement {
        "DELETE FROM backend.defect_account WHERE environment_id = \(environment)"
    }

    /// Whether the database has a place for them: since schema 23.
    package static func areKept(on connection: inout Connection) throws(PostgresError) -> Bool {
        try connection.run("SELECT to_regclass('backend.defect_account') IS NOT NULL")[0].decode(Bool.self)
    }

    /// Removes those of people who may come in with another account, by their numbers in `access.person`.
    package static func forget(_ people: [Int32], in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM backend.defect_account a USING access.person p, realm.realm r
        WHERE p.environment_id = \(environment) AND p.id = ANY (\(people))
            AND r.environment_id = p.environment_id AND r.path = '/users/' || p.email
            AND a.environment_id = r.environment_id AND a.realm_id = r.id
        """
    }
}
