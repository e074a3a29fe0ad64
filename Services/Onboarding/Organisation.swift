import Environments
import Identity
import Model
import Postgres

/// What an environment says of its logins.
struct Organisation: Sendable {
    let environment: EnvironmentID
    let issuer: String
    /// Of the tokens that the device API takes.
    let audience: String
    let discoveryURL: String?
    let scopes: [String]
    let client: ProviderClient
    let initialisesOnLogin: Bool
    let hidesUnknown: Bool
    let vouching: AddressVouching
    /// Its own, where the issuer vouches for their addresses; empty elsewhere.
    let domains: Set<String>

    static let columns: StaticString = """
        p.environment_id, p.issuer, p.audience, p.discovery_url, p.scopes, p.client_id, p.client_secret,
        p.initialise_on, p.hide_unknown, p.address_vouched_by,
        CASE p.address_vouched_by
            WHEN 'issuer' THEN ARRAY(SELECT d.domain FROM access.domain d WHERE d.environment_id = p.environment_id)
            ELSE '{}' END
        """
    /// So many they are: what else a statement selects comes after them.
    static let columnCount = 11

    /// - Returns: `nil` when the environment has no client at its provider.
    init?(_ row: Row, secrets: SecretBox) throws {
        environment = EnvironmentID(rawValue: try row.value(0))
        issuer = try row.value(1)
        audience = try row.value(2)
        discoveryURL = try row.optional(3)
        scopes = try row.value(4)
        guard let id = try row.optional(5, as: String.self), let sealed = try row.optional(6, as: Bytea.self) else {
            return nil
        }
        client = ProviderClient(
            id: id, secret: try secrets.openText(sealed.bytes, at: OAuthClient.secretPlace(environment)))
        initialisesOnLogin = try row.value(7, as: String.self) == "login"
        hidesUnknown = try row.value(8)
        vouching = try Self.vouching(row.value(9))
        domains = Set(try row.value(10, as: [String].self))
    }

    /// - Throws: When this program is too old to know it.
    private static func vouching(_ text: String) throws -> AddressVouching {
        guard let vouching = AddressVouching(rawValue: text) else {
            throw PostgresError(sqlState: nil, message: "addresses vouched for by '\(text)' are not known")
        }
        return vouching
    }

    /// Whose tokens are accepted.
    ///
    /// - Parameter audience: The client's id for ID tokens, the environment's audience for the device API's tokens.
    func identity(for audience: String, keysAt jwksURL: String) -> EnvironmentIdentity {
        EnvironmentIdentity(
            environment: environment.rawValue, issuer: issuer, audience: audience, jwksURL: jwksURL,
            vouching: vouching, domains: domains)
    }

    /// Where an address belongs.
    enum Place: Sendable {
        case none
        /// The environment has no login.
        case notSetUp
        case found(Organisation, isKnown: Bool)
    }

    /// Finds the environment of an address: by the address itself, else by its domain.
    ///
    /// Known and unknown addresses take the same statement.
    static func find(_ email: EmailAddress, _ secrets: SecretBox, on connection: inout Connection) throws -> Place {
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
        guard rows.count == 1 else { return .none }
        guard let organisation = try Organisation(rows[0], secrets: secrets) else { return .notSetUp }
        return .found(organisation, isKnown: try rows[0].value(columnCount))
    }
}
