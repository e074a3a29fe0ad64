package import Model
internal import ObjectStore
package import Postgres

/// What an environment says of its people's logins, as it is stored: the secret of its client is sealed.
package struct LoginSettings: Sendable {
    package let environment: EnvironmentID
    /// The number that it had where it was founded.
    package let foundedAs: EnvironmentID
    package let issuer: String
    /// Of the tokens that the device API takes.
    package let audience: String
    package let discoveryURL: String?
    package let scopes: [String]
    /// The client at the provider; it and its secret are `nil` where nobody can log in.
    package let clientID: String?
    package let clientSecret: Bytea?
    /// Whether a realm is filled when its person first logs in, not when the app asks for it.
    package let initialisesOnLogin: Bool
    package let hidesUnknown: Bool
    /// An ``AddressVouching``, unless a newer program wrote it.
    package let addressVouchedBy: String
    /// Its own, where the issuer vouches for their addresses; empty elsewhere.
    package let domains: Set<String>

    /// What ``init(_:)`` reads of `access.provider p`, for statements that join it with tables of their own.
    package static let columns: StaticString = """
        p.environment_id,
        (SELECT coalesce((to_jsonb(e)->>'founded_as')::int, e.id) FROM realm.environment e
            WHERE e.id = p.environment_id),
        p.issuer, p.audience, p.discovery_url, p.scopes, p.client_id, p.client_secret,
        p.initialise_on, p.hide_unknown, p.address_vouched_by,
        CASE p.address_vouched_by
            WHEN 'issuer' THEN ARRAY(SELECT d.domain FROM access.domain d WHERE d.environment_id = p.environment_id)
            ELSE '{}' END
        """

    /// Reads ``columns``.
    package init(_ columns: inout Columns) throws(PostgresError) {
        environment = try columns.next()
        foundedAs = try columns.next()
        issuer = try columns.next()
        audience = try columns.next()
        discoveryURL = try columns.next()
        scopes = try columns.next()
        clientID = try columns.next()
        clientSecret = try columns.next()
        initialisesOnLogin = try columns.next(String.self) == "login"
        hidesUnknown = try columns.next()
        addressVouchedBy = try columns.next()
        domains = Set(try columns.next([String].self))
    }

    /// The settings of the environment that an address belongs to, by the address itself, else by its domain; and
    /// whether its back end knows the address, or it has none. `nil` when the address belongs nowhere.
    ///
    /// Known and unknown addresses take the same statement.
    package static func find(
        _ email: EmailAddress, on connection: inout Connection
    ) throws(PostgresError) -> (settings: LoginSettings, isKnown: Bool)? {
        let rows = try connection.run(
            """
            SELECT \(sql: columns), EXISTS (
                    SELECT FROM backend.person b
                    WHERE b.environment_id = p.environment_id AND b.email = \(email.description))
                OR NOT EXISTS (SELECT FROM backend.connection c WHERE c.environment_id = p.environment_id)
            FROM (
                SELECT environment_id, 0 AS rank FROM access.address WHERE email = \(email.description)
                UNION ALL SELECT environment_id, 1 FROM access.domain WHERE domain = \(email.domain)
                ORDER BY rank LIMIT 1
            ) f JOIN access.provider p ON p.environment_id = f.environment_id
            """)
        guard var columns = rows.first?.columns else { return nil }
        let found = (settings: try LoginSettings(&columns), isKnown: try columns.next(Bool.self))
        try columns.end()
        return found
    }
}
