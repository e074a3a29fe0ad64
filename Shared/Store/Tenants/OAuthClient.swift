package import Model
internal import ObjectStore
package import Postgres

/// Fieldpost's OAuth client at an environment's identity provider.
package enum OAuthClient {
    /// Whether people log in with this client.
    package static func isSet(
        _ id: String, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Bool {
        let rows = try connection.run(
            "SELECT FROM access.provider WHERE environment_id = \(environment) AND client_id = \(id)")
        return rows.count > 0
    }

    /// Returns the statement that sets an environment's client, unless it has one.
    ///
    /// - Parameters:
    ///   - secret: Sealed for `SecretContext.clientSecret`.
    ///   - issuer: The required prefix of the environment's issuer: prevents setting the client of another provider.
    package static func set(
        _ id: String, secret: Bytea, in environment: EnvironmentID, ofIssuer issuer: String
    ) -> Statement {
        """
        UPDATE access.provider SET client_id = \(id), client_secret = \(secret)
        WHERE environment_id = \(environment) AND client_id IS NULL AND starts_with(issuer, \(issuer))
        """
    }
}
