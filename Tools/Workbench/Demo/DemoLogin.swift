import FoundationEssentials
import Identity
import Model
import Postgres
import Secrets
import ServiceSettings
import Tenants

/// The login of the demo's people at onboarding, by the OAuth client of the emulated identity provider.
struct DemoLogin: Sendable {
    static let clientID = "fieldpost"
    static let secretVariable = "SANDBOX_CLIENT_SECRET"
    /// The password of all people.
    static let password = "sandbox"

    private let secret: String
    private let secrets: SecretBox

    /// - Returns: `nil` if the environment variables have no client secret, or no key to seal it with.
    static func inherited() throws -> DemoLogin? {
        let variables = ProcessInfo.processInfo.environment
        let keys = variables.filter { $0.key == Setting.secretKeys.variable }
        let secrets = try SecretBox(Configuration([.secretKeys], environment: keys).list(.secretKeys))
        guard secrets.canSeal, let secret = variables[secretVariable], !secret.isEmpty else { return nil }
        return DemoLogin(secret: secret, secrets: secrets)
    }

    /// Seals a text for the services.
    ///
    /// - Parameter context: The context of the sealed text.
    func seal(_ text: String, at context: String) throws -> Bytea { Bytea(try secrets.seal(text, at: context)) }

    /// Gives an environment of this identity provider its login, unless it has one.
    ///
    /// - Parameter issuer: What the issuers of the identity provider begin with.
    func open(_ environment: EnvironmentID, of issuer: String, on connection: inout Connection) throws {
        let sealed = try seal(secret, at: SecretContext.clientSecret(environment))
        try connection.run(OAuthClient.set(Self.clientID, secret: sealed, in: environment, ofIssuer: issuer))
    }
}
