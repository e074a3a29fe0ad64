package import Model
import ObjectStore
package import Postgres

/// The SQL of `backend.defect_login`: which person is which login of the environment's tracker of defects.
package enum DefectLogins {
    /// Those of some logins. Rows: login, e-mail address.
    package static func people(_ logins: [String], in environment: EnvironmentID) -> Statement {
        """
        SELECT login, email FROM backend.defect_login
        WHERE environment_id = \(environment) AND login = ANY (\(logins))
        """
    }

    /// Everybody. Rows: login, e-mail address.
    package static func people(in environment: EnvironmentID) -> Statement {
        """
        SELECT login, email FROM backend.defect_login
        WHERE environment_id = \(environment) ORDER BY email COLLATE "C"
        """
    }

    /// Makes these the environment's logins, and no others; all defects are compared again.
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
