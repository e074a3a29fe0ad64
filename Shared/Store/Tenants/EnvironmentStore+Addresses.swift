import Model
import ObjectStore
package import Postgres

extension EnvironmentStore {
    /// Lets what is stored follow a server that has another address now: identity providers, who is bound to them, and
    /// back ends. For the stand-ins of one machine, whose ports may be taken.
    ///
    /// - Parameters:
    ///   - from: What the addresses begin with, or have in them: scheme, host and port.
    ///   - to: What stands there from now on.
    package static func moveAddress(from: String, to: String) -> [Statement] {
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

    /// One of each role who can log in at an identity provider, preferring who is in a team. Rows: the role, an e-mail
    /// address.
    ///
    /// - Parameters:
    ///   - issuer: What the provider's issuers begin with.
    ///   - name: The environment whose people come first.
    package static func people(at issuer: String, before name: String) -> Statement {
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
