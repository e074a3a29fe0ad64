package import Model
internal import ObjectStore
package import Postgres

extension PersonBinding {
    /// Returns the next people who are bound to an account of the identity provider, sorted by id.
    ///
    /// - Parameters:
    ///   - last: Returns only greater ids.
    ///   - people: Restricts the result to these ids; `nil`: no restriction.
    package static func bound(
        after last: Int32, of people: [Int32]?, countMax: Int64, in environment: EnvironmentID,
        on connection: inout Connection
    ) throws(PostgresError) -> [(id: Int32, email: String)] {
        try connection.run(
            """
            SELECT id, email FROM access.person
            WHERE environment_id = \(environment) AND id > \(last) AND subject IS NOT NULL
                AND (\(people == nil) OR id = ANY (\(people ?? [])))
            ORDER BY id LIMIT \(countMax)
            """
        ).decode(Int32.self, String.self).map { (id: $0, email: $1) }
    }

    /// Returns statements that unbind people's accounts: their next login binds one. Their devices can no longer renew
    /// tokens, even if the same account is bound again.
    package static func unbind(_ people: [Int32], in environment: EnvironmentID) -> [Statement] {
        [
            """
            UPDATE access.person SET issuer = NULL, subject = NULL, bound_at = NULL
            WHERE environment_id = \(environment) AND id = ANY (\(people))
            """,
            """
            UPDATE onboarding.refresh_token SET newest = NULL, former = NULL
            WHERE environment_id = \(environment) AND person_id = ANY (\(people)) AND newest IS NOT NULL
            """,
        ]
    }
}
