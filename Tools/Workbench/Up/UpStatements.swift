import Model
import ObjectStore
import Postgres

/// The SQL of environments that only the workbench needs.
enum UpStatements {
    /// Returns statements that replace an emulator's address, whose port may change, in identity providers, bound
    /// accounts and back ends.
    ///
    /// - Parameters:
    ///   - from: The old scheme, host and port: a prefix or part of the stored addresses.
    ///   - to: The new scheme, host and port.
    static func moveAddress(from: String, to: String) -> [Statement] {
        [
            """
            UPDATE access.provider SET issuer = replace(issuer, \(from), \(to)),
                jwks_url = replace(jwks_url, \(from), \(to))
            """,
            "UPDATE access.person SET issuer = replace(issuer, \(from), \(to)) WHERE starts_with(issuer, \(from))",
            "UPDATE onboarding.refresh_token SET issuer = replace(issuer, \(from), \(to))",
            "UPDATE backend.connection SET url = replace(url, \(from), \(to))",
            "UPDATE backend.defect_tracker SET server_url = replace(server_url, \(from), \(to))",
        ]
    }

    /// Returns a statement that selects one person of each role who can log in at an identity provider, preferably a
    /// team member. Rows: the role, an e-mail address.
    ///
    /// - Parameters:
    ///   - issuer: The prefix of the provider's issuers.
    ///   - name: The preferred environment.
    static func people(at issuer: String, before name: String) -> Statement {
        """
        SELECT DISTINCT ON (r.role) r.role, a.email
        FROM access.person a
        LEFT JOIN store.object o ON o.environment_id = a.environment_id AND o.kind = \(Kind.person)
            AND o.id = a.object_id AND NOT o.deleted
        CROSS JOIN LATERAL (SELECT coalesce(o.fields::json->>'role', \(Role.worker.rawValue)) AS role) r
        WHERE a.environment_id = (
            SELECT e.id FROM realm.environment e JOIN access.provider p ON p.environment_id = e.id
            WHERE starts_with(p.issuer, \(issuer)) AND p.client_id IS NOT NULL
            ORDER BY e.name = \(name) DESC, e.id LIMIT 1)
            AND EXISTS (
                SELECT FROM access.domain d
                WHERE d.environment_id = a.environment_id AND d.domain = split_part(a.email, '@', 2))
        ORDER BY r.role, a.object_id::text IN (
            SELECT m.fields::json->>'person' FROM store.object m
            WHERE m.kind = \(Kind.membership) AND NOT m.deleted) DESC, a.email
        """
    }
}
