package import Model
internal import ObjectStore
package import Postgres

/// How people and integrations come into all environments: what a service reads again and again, to let them in.
package struct AccessDirectory: Sendable {
    /// Whose tokens are accepted.
    package struct Provider: Sendable {
        package let environment: EnvironmentID
        package let issuer: String
        package let audience: String
        package let jwksURL: String
        /// An ``AddressVouching``, unless a newer program wrote it.
        package let addressVouchedBy: String
    }

    package struct Integration: Sendable {
        package let integration: IntegrationStore.Integration
        /// Of its key; `nil` when it comes in with tokens.
        package let keyHash: Bytea?
        /// The client whose tokens let it in, and the subject that they have.
        package let client: (id: String, subject: String)?
    }

    /// In the order of the environments.
    package let providers: [Provider]
    /// But those that name the client that people log in with.
    package let integrations: [Integration]
    package let domains: [EnvironmentID: Set<String>]
    /// Environments that have moved to another installation, and their base URL there.
    package let left: [EnvironmentID: String?]

    /// Reads it.
    package static func load(on connection: inout Connection) throws(PostgresError) -> AccessDirectory {
        let answers = try connection.run([
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
        let domains = try answers[2].decode(EnvironmentID.self, String.self)
        return AccessDirectory(
            providers: try answers[0].decode(
                EnvironmentID.self, String.self, String.self, String.self, String.self
            ).map {
                Provider(environment: $0, issuer: $1, audience: $2, jwksURL: $3, addressVouchedBy: $4)
            },
            integrations: try answers[1].map { row throws(PostgresError) in try integration(row) },
            domains: Dictionary(grouping: domains, by: \.0).mapValues { Set($0.map(\.1)) },
            left: try left(on: &connection))
    }

    /// Environments that have moved to another installation, and their base URL there.
    ///
    /// - Returns: None in a database whose schema does not know of moves yet.
    package static func left(on connection: inout Connection) throws(PostgresError) -> [EnvironmentID: String?] {
        let rows = try connection.runWhereThere(
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

    /// The environment that has an address in its list, whatever the address's domain.
    package static func environment(
        ofAddress email: EmailAddress, on connection: inout Connection
    ) throws(PostgresError) -> EnvironmentID? {
        try connection.run("SELECT environment_id FROM access.address WHERE email = \(email.description)")
            .first?.decode(EnvironmentID.self)
    }
}
