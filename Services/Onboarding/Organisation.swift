import Access
import HTTPServer
import Identity
import Model
import Postgres
import Secrets
import Tenants

/// What an environment says of its logins.
struct Organisation: Sendable {
    let environment: EnvironmentID
    /// The number that it had where it was founded.
    let foundedAs: EnvironmentID
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

    /// - Returns: `nil` when the environment has no client at its provider.
    init?(_ settings: LoginSettings, secrets: SecretBox) throws {
        guard let id = settings.clientID, let sealed = settings.clientSecret else { return nil }
        environment = settings.environment
        foundedAs = settings.foundedAs
        issuer = settings.issuer
        audience = settings.audience
        discoveryURL = settings.discoveryURL
        scopes = settings.scopes
        client = ProviderClient(
            id: id, secret: try secrets.openText(sealed.bytes, at: SecretContext.clientSecret(environment)))
        initialisesOnLogin = settings.initialisesOnLogin
        hidesUnknown = settings.hidesUnknown
        vouching = try Self.vouching(settings.addressVouchedBy)
        domains = settings.domains
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
    ///
    /// - Throws: A `Problem` when the environment has moved to another installation.
    static func find(_ email: EmailAddress, _ secrets: SecretBox, on connection: inout Connection) throws -> Place {
        let left = try AccessDirectory.left(on: &connection)
        guard let (settings, isKnown) = try LoginSettings.find(email, on: &connection) else { return .none }
        if let url = left[settings.environment] { throw Problem.environmentMoved(to: url) }
        guard let organisation = try Organisation(settings, secrets: secrets) else { return .notSetUp }
        return .found(organisation, isKnown: isKnown)
    }
}
