package import Model
internal import ObjectStore
package import Postgres
package import Tenants

/// The issuers, integrations and domains of all environments: a snapshot that a service reloads to authenticate
/// callers.
package struct AccessDirectory: Sendable {
    package struct Integration: Sendable {
        package let integration: IntegrationStore.Integration
        /// The hash of its key; `nil` if it authenticates with tokens.
        package let keyHash: Bytea?
        /// The client and subject of its tokens; `nil` if it authenticates with a key.
        package let client: (id: String, subject: String)?
    }

    /// The identity providers, sorted by environment. One that a newer release configured in an unknown way is omitted,
    /// so that it grants no access.
    package let providers: [EnvironmentIdentity]
    /// Without those whose client is also used for people's logins.
    package let integrations: [Integration]
    package let domains: [EnvironmentID: Set<String>]
    /// Environments that moved to another installation, with their base URL there.
    package let left: [EnvironmentID: String?]

    /// Loads the current snapshot.
    package static func load(on connection: inout Connection) throws(PostgresError) -> AccessDirectory {
        let results = try connection.run([
            """
            SELECT environment_id, issuer, audience, jwks_url, address_vouched_by FROM access.provider ORDER BY 1
            """,
            """
            SELECT i.environment_id, i.id, i.name, i.key_hash, i.client_id, coalesce(i.subject, i.client_id)
            FROM access.integration i LEFT JOIN access.provider p ON p.environment_id = i.environment_id
            WHERE i.client_id IS NULL OR i.client_id IS DISTINCT FROM p.client_id
            """,
            "SELECT environment_id, domain FROM access.domain",
        ])
        let domains = Dictionary(grouping: try results[2].decode(EnvironmentID.self, String.self), by: \.0)
            .mapValues { Set($0.map(\.1)) }
        let providers = try results[0].decode(EnvironmentID.self, String.self, String.self, String.self, String.self)
        return AccessDirectory(
            providers: providers.compactMap { environment, issuer, audience, jwksURL, verifiedBy in
                AddressVerification(rawValue: verifiedBy).map {
                    EnvironmentIdentity(
                        environment: environment.rawValue, issuer: issuer, audience: audience, jwksURL: jwksURL,
                        addressVerification: $0, domains: domains[environment] ?? [])
                }
            },
            integrations: try results[1].map { row throws(PostgresError) in try integration(row) },
            domains: domains, left: try left(on: &connection))
    }

    /// Loads the environments that moved to another installation, with their base URL there.
    ///
    /// - Returns: Empty if the schema predates moves.
    package static func left(on connection: inout Connection) throws(PostgresError) -> [EnvironmentID: String?] {
        let rows = try connection.runIfTableExists(
            "SELECT environment_id, moved_to FROM realm.move WHERE state = 'left'")
        return Dictionary(uniqueKeysWithValues: try rows?.decode(EnvironmentID.self, String?.self) ?? [])
    }

    private static func integration(_ row: Row) throws(PostgresError) -> Integration {
        let (environment, id, name, keyHash, client, subject) = try row.decode(
            EnvironmentID.self, Int32.self, String.self, Bytea?.self, String?.self, String?.self)
        return Integration(
            integration: IntegrationStore.Integration(environment: environment, id: id, name: name), keyHash: keyHash,
            client: client.flatMap { id in subject.map { (id, $0) } })
    }

    /// Returns the environment that lists an address explicitly, regardless of the address's domain.
    package static func environment(
        ofAddress email: EmailAddress, on connection: inout Connection
    ) throws(PostgresError) -> EnvironmentID? {
        try connection.run("SELECT environment_id FROM access.address WHERE email = \(email.description)")
            .first?.decode(EnvironmentID.self)
    }
}
