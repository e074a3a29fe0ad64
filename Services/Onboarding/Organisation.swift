import Access
import HTTPServer
import Identity
import Model
import Postgres
import Secrets
import Tenants

/// An environment's login configuration, with the client secret decrypted.
struct Organisation: Sendable {
    let environment: EnvironmentID
    /// The environment's number in its original installation.
    let foundedAs: EnvironmentID
    let issuer: String
    /// The audience of tokens for the device API.
    let audience: String
    let discoveryURL: String?
    let scopes: [String]
    let client: ProviderClient
    let initialisesOnLogin: Bool
    let hidesUnknown: Bool
    let addressVerification: AddressVerification
    /// The environment's domains if the issuer asserts addresses; otherwise empty.
    let domains: Set<String>

    /// - Returns: `nil` if the environment has no client at its provider.
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
        addressVerification = try Self.addressVerification(settings.addressVerifiedBy)
        domains = settings.domains
    }

    /// - Throws: If the value is unknown to this version.
    private static func addressVerification(_ text: String) throws -> AddressVerification {
        guard let addressVerification = AddressVerification(rawValue: text) else {
            throw PostgresError(sqlState: nil, message: "address_vouched_by '\(text)' is not supported by this version")
        }
        return addressVerification
    }

    /// Returns the issuer and audience of accepted tokens.
    ///
    /// - Parameter audience: The client's id for ID tokens, the environment's audience for the device API's tokens.
    func identity(for audience: String, keysAt jwksURL: String) -> EnvironmentIdentity {
        EnvironmentIdentity(
            environment: environment.rawValue, issuer: issuer, audience: audience, jwksURL: jwksURL,
            addressVerification: addressVerification, domains: domains)
    }

    /// The result of looking up an address.
    enum Lookup: Sendable {
        case none
        /// The environment has no OAuth client.
        case notConfigured
        case organisation(Organisation, isKnown: Bool)
    }

    /// Looks up the environment of an address, by the address or otherwise its domain.
    ///
    /// Known and unknown addresses execute the same statement, so that timing does not distinguish them.
    ///
    /// - Throws: A `Problem` if the environment has moved to another installation.
    static func find(_ email: EmailAddress, _ secrets: SecretBox, on connection: inout Connection) throws -> Lookup {
        let left = try AccessDirectory.left(on: &connection)
        guard let (settings, isKnown) = try LoginSettings.find(email, on: &connection) else { return .none }
        if let url = left[settings.environment] { throw Problem.environmentMoved(to: url) }
        guard let organisation = try Organisation(settings, secrets: secrets) else { return .notConfigured }
        return .organisation(organisation, isKnown: isKnown)
    }
}

extension AuthorizationRequest {
    /// Returns the URL of the login page of an organisation's provider.
    func url(_ organisation: Organisation, _ metadata: ProviderMetadata, _ email: EmailAddress, redirect: String)
        -> String
    {
        url(
            as: organisation.client.id, scopes: organisation.scopes, at: metadata, redirect: redirect,
            hint: email.description)
    }
}
