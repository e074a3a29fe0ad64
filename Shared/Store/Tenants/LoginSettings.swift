package import Model
internal import ObjectStore
package import Postgres

/// An environment's settings for people's logins, as stored: the client secret is sealed.
package struct LoginSettings: Sendable {
    package let environment: EnvironmentID
    /// The environment's number in its original installation.
    package let foundedAs: EnvironmentID
    package let issuer: String
    /// The audience of tokens for the device API.
    package let audience: String
    package let discoveryURL: String?
    package let scopes: [String]
    /// The client at the provider; it and its secret are `nil` if logins are disabled.
    package let clientID: String?
    package let clientSecret: Bytea?
    /// Whether a realm is initialised at the person's first login instead of at the app's registration request.
    package let initialisesOnLogin: Bool
    package let hidesUnknown: Bool
    /// An ``AddressVerification``; an unknown value if a newer program wrote it.
    package let addressVerifiedBy: String
    /// The environment's domains if the issuer asserts addresses; otherwise empty.
    package let domains: Set<String>

    /// The columns that ``init(_:)`` decodes, from `access.provider p`, for statements that join other tables.
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

    /// Decodes ``columns``.
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
        addressVerifiedBy = try columns.next()
        domains = Set(try columns.next([String].self))
    }

    /// Returns the settings of the environment that an address belongs to, by the address or otherwise its domain;
    /// `nil` if there is none. `isKnown` is whether the back end lists the address, or there is no back end.
    ///
    /// Known and unknown addresses execute the same statement, so that timing does not distinguish them.
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
        let result = (settings: try LoginSettings(&columns), isKnown: try columns.next(Bool.self))
        try columns.end()
        return result
    }
}
