package import Model
internal import ObjectStore
package import Postgres

/// The SQL of refresh tokens, their devices and their people in `access.person`.
package enum RefreshTokenStore {
    package struct Token: Sendable {
        package let number: Int64
        package let person: Int32
        package let sealed: Bytea
        package let email: String
    }

    /// A device that can renew its token.
    package struct Device: Encodable, Sendable {
        package let number: Int64
        package let email: String
        /// The name that the device reported.
        package let device: String
        /// The time of the last renewal or login.
        package let usedAt: String
    }

    /// A selection of tokens.
    package struct Selection: Sendable {
        /// `nil`: all people.
        package let people: [Int32]?
        /// Restricts the selection to these devices; empty: all devices.
        package let devices: [Int64]

        package init(people: [Int32]?, devices: [Int64] = []) {
            self.people = people
            self.devices = devices
        }
    }

    private static let pageCountMax: Int64 = 500

    /// Returns the next tokens that are not revoked, sorted by number.
    package static func load(
        after last: Int64, of selection: Selection, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Token] {
        try connection.run(
            """
            SELECT t.id, t.person_id, t.token, p.email FROM onboarding.refresh_token t
            JOIN access.person p ON p.environment_id = t.environment_id AND p.id = t.person_id
            WHERE t.environment_id = \(environment) AND t.revoked_at IS NULL AND t.id > \(last)
                AND (\(selection.people == nil) OR t.person_id = ANY (\(selection.people ?? [])))
                AND (\(selection.devices.isEmpty) OR t.id = ANY (\(selection.devices)))
            ORDER BY t.id LIMIT \(pageCountMax)
            """
        ).decode(Int64.self, Int32.self, Bytea.self, String.self).map {
            Token(number: $0, person: $1, sealed: $2, email: $3)
        }
    }

    /// Returns the devices of certain people, or of all (`nil`), sorted by address.
    package static func devices(
        of people: [Int32]?, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Device] {
        try connection.run(
            """
            SELECT t.id, p.email, t.device_name, to_char(t.used_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM onboarding.refresh_token t
            JOIN access.person p ON p.environment_id = t.environment_id AND p.id = t.person_id
            WHERE t.environment_id = \(environment) AND t.newest IS NOT NULL AND t.revoked_at IS NULL
                AND (\(people == nil) OR t.person_id = ANY (\(people ?? [])))
            ORDER BY p.email, t.id
            """
        ).decode(Int64.self, String.self, String.self, String.self).map {
            Device(number: $0, email: $1, device: $2, usedAt: $3)
        }
    }

    /// Prevents devices from renewing their tokens, independently of the provider.
    ///
    /// - Returns: The people of these devices.
    package static func revokeDevices(
        _ selection: Selection, in environment: EnvironmentID, on transaction: inout Transaction
    ) throws(PostgresError) -> [String] {
        try transaction.run(
            """
            UPDATE onboarding.refresh_token t SET newest = NULL, former = NULL FROM access.person p
            WHERE t.environment_id = \(environment) AND t.newest IS NOT NULL
                AND p.environment_id = t.environment_id AND p.id = t.person_id
                AND (\(selection.people == nil) OR t.person_id = ANY (\(selection.people ?? [])))
                AND (\(selection.devices.isEmpty) OR t.id = ANY (\(selection.devices)))
            RETURNING p.email
            """
        ).decode(String.self)
    }

    /// Returns a statement that erases a token and marks it as revoked.
    package static func remove(_ token: Token, in environment: EnvironmentID) -> Statement {
        """
        UPDATE onboarding.refresh_token SET revoked_at = now(), token = ''
        WHERE environment_id = \(environment) AND id = \(token.number)
        """
    }
}
