package import Model

/// The client of an environment's identity provider that Fieldpost is.
package enum OAuthClient {
    /// What the client's secret is sealed for.
    package static func secretPlace(_ environment: EnvironmentID) -> String { "provider/\(environment)/client-secret" }
}
