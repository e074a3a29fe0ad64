import Access
import HTTPServer
import Identity
import Model
import Postgres
import Secrets
import Tenants

/// An environment's login configuration, with the client secret decrypted. The stored settings are also its members.
@dynamicMemberLookup
struct Organisation: Sendable {
    private let settings: LoginSettings
    let client: ProviderClient
    let addressVerification: AddressVerification

    /// - Returns: `nil` if the environment has no client at its provider.
    /// - Throws: If the verification of addresses is unknown to this version.
    init?(_ settings: LoginSettings, secrets: SecretBox) throws {
        guard let id = settings.clientID, let sealed = settings.clientSecret else { return nil }
        client = ProviderClient(
            id: id, secret: try secrets.openText(sealed.bytes, at: SecretContext.clientSecret(settings.environment)))
        let verifiedBy = settings.addressVerifiedBy
        guard let addressVerification = AddressVerification(rawValue: verifiedBy) else {
            throw PostgresError(
                sqlState: nil, message: "address_vouched_by '\(verifiedBy)' is not supported by this version")
        }
        self.settings = settings
        self.addressVerification = addressVerification
    }

    subscript<Value>(dynamicMember member: KeyPath<LoginSettings, Value>) -> Value { settings[keyPath: member] }

    /// Returns the issuer and audience of accepted tokens.
    ///
    /// - Parameter audience: The client's id for ID tokens, the environment's audience for the device API's tokens.
    func identity(for audience: String, keysAt jwksURL: String) -> EnvironmentIdentity {
        EnvironmentIdentity(
            environment: settings.environment.rawValue, issuer: settings.issuer, audience: audience, jwksURL: jwksURL,
            addressVerification: addressVerification, domains: settings.domains)
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
