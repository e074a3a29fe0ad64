package import Model
internal import ObjectStore
package import Postgres

/// The client of an environment's identity provider that Fieldpost is.
package enum OAuthClient {
    /// Whether people log in with this client.
    package static func isSet(
        _ id: String, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Bool {
        let rows = try connection.run(
            "SELECT FROM access.provider WHERE environment_id = \(environment) AND client_id = \(id)")
        return rows.count > 0
    }

    /// Gives an environment its client, unless it has one.
    ///
    /// - Parameters:
    ///   - secret: Sealed for `SecretContext.clientSecret`.
    ///   - issuer: What the environment's issuer begins with; another one's client stays away.
    package static func set(
        _ id: String, secret: Bytea, in environment: EnvironmentID, ofIssuer issuer: String
    ) -> Statement {
        """
        UPDATE access.provider SET client_id = \(id), client_secret = \(secret)
        WHERE environment_id = \(environment) AND client_id IS NULL AND starts_with(issuer, \(issuer))
        """
    }
}
