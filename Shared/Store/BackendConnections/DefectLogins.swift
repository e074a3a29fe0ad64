package import Model
import ObjectStore
package import Postgres

/// SQL statements for `backend.defect_login`: the logins of people in the environment's defect tracker.
package enum DefectLogins {
    /// Selects the people with some logins. Rows: login, e-mail address.
    package static func people(_ logins: [String], in environment: EnvironmentID) -> Statement {
        """
        SELECT login, email FROM backend.defect_login
        WHERE environment_id = \(environment) AND login = ANY (\(logins))
        """
    }

    /// Selects all people. Rows: login, e-mail address.
    package static func people(in environment: EnvironmentID) -> Statement {
        """
        SELECT login, email FROM backend.defect_login
        WHERE environment_id = \(environment) ORDER BY email COLLATE "C"
        """
    }

    /// Replaces all logins of the environment, and requests a new comparison of all defects.
    ///
    /// - Parameter logins: By e-mail address.
    package static func replace(_ logins: [String: String], in environment: EnvironmentID) -> [Statement] {
        let pairs = logins.map { (email: EmailAddress.lowered($0.key), login: $0.value) }.sorted { $0.email < $1.email }
        return [
            "DELETE FROM backend.defect_login WHERE environment_id = \(environment)",
            """
            INSERT INTO backend.defect_login (environment_id, email, login)
            SELECT \(environment), i.email, i.login
            FROM unnest(\(pairs.map(\.email)), \(pairs.map(\.login))) AS i(email, login)
            """,
            """
            UPDATE defect.run SET asked_for = true
            WHERE environment_id = \(environment) AND scope = 'comparison'
            """,
        ]
    }
}
