import FoundationEssentials
import HTTPClient

/// A client of the emulated identity provider, which issues tokens to every caller.
struct IdentitySandbox: EmulatorControl {
    static let name = "the identity provider"

    private struct Discovery: Decodable {
        let issuer: String
        let jwks_uri: String?
    }

    let client: Client
    /// Without a slash at the end.
    let url: String

    /// The path of the issuer that stands for an environment with the shape of Microsoft Entra ID's: a tenant's id.
    static func tenant(of environment: String) -> String {
        StableID.uuid("tenant", environment).uuidString.lowercased()
    }

    /// The issuer that stands for an environment, below the provider's own; `nil` is the provider's own.
    ///
    /// - Returns: The issuer and the address of its keys (OpenID Connect Discovery 1.0 §4).
    func issuer(below path: String?) async throws -> (issuer: String, keys: String) {
        let path = (path.map { "/" + $0 } ?? "") + "/.well-known/openid-configuration"
        let discovery = try JSONDecoder().decode(Discovery.self, from: Data(try await send("GET", path)))
        return (discovery.issuer, discovery.jwks_uri ?? discovery.issuer + "/jwks")
    }
}

/// The source of devices' tokens.
struct DeviceTokens: Sendable {
    private struct TokenRequest: Encodable {
        let email: String
        let name: String
        let environment: String?
    }

    let identity: IdentitySandbox
    /// As ``IdentitySandbox/issuer(below:)`` has it.
    let issuerPath: String?

    /// Determines whether the environment's issuer is the provider itself or one below it.
    ///
    /// - Throws: ``DemoFailure`` when the environment trusts neither.
    init(_ identity: IdentitySandbox, environment name: String, issuer: String) async throws {
        self.identity = identity
        for path in [name, IdentitySandbox.tenant(of: name), nil]
        where try await identity.issuer(below: path).issuer == issuer {
            issuerPath = path
            return
        }
        throw DemoFailure("the environment \(name) trusts \(issuer), which is not the identity provider given")
    }

    /// One token for each person, in their order.
    func tokens(for people: [Organisation.Person]) async throws -> [String] {
        let requests = people.map { TokenRequest(email: $0.email, name: $0.name, environment: issuerPath) }
        let response = try await identity.post("/sandbox/tokens", requests)
        let tokens = try JSONDecoder().decode([String].self, from: Data(response))
        guard tokens.count == people.count else {
            throw DemoFailure("the identity provider gives \(tokens.count) tokens for \(people.count) people")
        }
        return tokens
    }
}

/// A failure of the demo, in one line for its operator.
struct DemoFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
