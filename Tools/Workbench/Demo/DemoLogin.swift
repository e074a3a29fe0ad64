import FoundationEssentials
import Identity
import Model
import Postgres
import Secrets
import ServiceSettings
import Tenants

/// How the demo's people log in at onboarding: by the client that the sandbox's identity provider knows.
struct DemoLogin: Sendable {
    static let clientID = "fieldpost"
    static let secretVariable = "SANDBOX_CLIENT_SECRET"
    /// The sandbox's password of everybody.
    static let password = "sandbox"

    private let secret: String
    private let secrets: SecretBox

    /// - Returns: `nil` when the environment has not got the client's secret, or no key to seal it with.
    static func inherited() throws -> DemoLogin? {
        let variables = ProcessInfo.processInfo.environment
        let keys = variables.filter { $0.key == Setting.secretKeys.variable }
        let secrets = try SecretBox(Configuration([.secretKeys], environment: keys).list(.secretKeys))
        guard secrets.canSeal, let secret = variables[secretVariable], !secret.isEmpty else { return nil }
        return DemoLogin(secret: secret, secrets: secrets)
    }

    /// Seals what the services open.
    ///
    /// - Parameter place: What it is sealed for.
    func seal(_ text: String, at place: String) throws -> Bytea { Bytea(try secrets.seal(text, at: place)) }

    /// Gives an environment of this identity provider its login, unless it has one.
    ///
    /// - Parameter issuer: What the issuers of the identity provider begin with.
    func open(_ environment: EnvironmentID, of issuer: String, on connection: inout Connection) throws {
        let sealed = try seal(secret, at: SecretContext.clientSecret(environment))
        try connection.run(OAuthClient.set(Self.clientID, secret: sealed, in: environment, ofIssuer: issuer))
    }
}
