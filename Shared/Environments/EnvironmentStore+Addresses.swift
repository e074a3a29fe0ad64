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
        ]
    }

    /// Somebody who can log in at an identity provider. Rows: an e-mail address, or none.
    ///
    /// - Parameters:
    ///   - issuer: What the provider's issuers begin with.
    ///   - name: The environment whose people come first.
    package static func somebody(at issuer: String, before name: String) -> Statement {
        """
        SELECT b.email FROM backend.person b WHERE b.environment_id = (
            SELECT e.id FROM realm.environment e JOIN access.provider p ON p.environment_id = e.id
            WHERE starts_with(p.issuer, \(issuer)) AND p.client_id IS NOT NULL
            ORDER BY e.name = \(name) DESC, e.id LIMIT 1) ORDER BY b.email LIMIT 1
        """
    }
}
