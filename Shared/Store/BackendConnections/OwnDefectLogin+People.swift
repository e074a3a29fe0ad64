package import Model
import ObjectStore
package import Postgres

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
