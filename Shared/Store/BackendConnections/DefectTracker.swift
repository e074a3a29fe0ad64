package import BackendProtocol
package import Compass
package import HTTPClient
package import Model
package import Postgres
package import Secrets

/// The connection settings of an environment's defect tracker, as stored by `fieldpost environment defects add`.
package struct DefectTracker: Sendable, Equatable {
    /// The account for reading all defects, with its secret sealed for `SecretContext.defectAccount`.
    package enum Account: Sendable, Equatable {
        case password(user: String, sealed: Bytea)
        case token(sealed: Bytea)

        package var user: String? {
            switch self {
            case .password(let user, _): user
            case .token: nil
            }
        }

        package var sealed: Bytea {
            switch self {
            case .password(_, let sealed), .token(let sealed): sealed
            }
        }
    }

    /// Seconds between polls: the default and the allowed range.
    package static let pollSecondsDefault: Int32 = 300
    package static let pollSecondsRange: ClosedRange<Int32> = 5...86_400

    package let environment: EnvironmentID
    package var serverURL = ""
    package var repository = ""
    package var database = ""
    package var recordType = "Defect"
    /// `nil` if each person's own login is used.
    package var account: Account?
    package var pollSeconds = DefectTracker.pollSecondsDefault

    /// Creates settings that are not stored yet.
    package init(environment: EnvironmentID) { self.environment = environment }

    /// Returns whether both use the same database, for which people's own logins are valid.
    package func isSameDatabase(as other: DefectTracker) -> Bool {
        (serverURL, repository, database) == (other.serverURL, other.repository, other.database)
    }

    // MARK: Storing

    /// Returns the settings; `nil` if the environment has no tracker.
    package static func load(
        _ environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> DefectTracker? {
        let rows = try connection.run(
            """
            SELECT server_url, repository, database_name, record_type, user_name, secret, poll_interval_seconds
            FROM backend.defect_tracker WHERE environment_id = \(environment.rawValue)
            """)
        guard let row = rows.first else { return nil }
        var tracker = DefectTracker(environment: environment)
        let user: String?
        let secret: Bytea?
        (
            tracker.serverURL, tracker.repository, tracker.database, tracker.recordType, user, secret,
            tracker.pollSeconds
        ) = try row.decode(String.self, String.self, String.self, String.self, String?.self, Bytea?.self, Int32.self)
        tracker.account = secret.map { sealed in
            user.map { .password(user: $0, sealed: sealed) } ?? .token(sealed: sealed)
        }
        return tracker
    }

    /// Selects the polling interval of each environment's tracker. Rows: environment, seconds, whether there is a
    /// shared account; without one, each person's own login is used.
    package static let intervals: Statement = """
        SELECT environment_id, poll_interval_seconds, secret IS NOT NULL FROM backend.defect_tracker
        ORDER BY environment_id
        """

    /// Inserts or replaces all settings.
    package func save() -> Statement {
        """
        INSERT INTO backend.defect_tracker (environment_id, server_url, repository, database_name, record_type,
            user_name, secret, poll_interval_seconds)
        VALUES (\(environment.rawValue), \(serverURL), \(repository), \(database), \(recordType), \(account?.user),
            \(account?.sealed), \(pollSeconds))
        ON CONFLICT (environment_id) DO UPDATE SET server_url = excluded.server_url,
            repository = excluded.repository, database_name = excluded.database_name,
            record_type = excluded.record_type, user_name = excluded.user_name, secret = excluded.secret,
            poll_interval_seconds = excluded.poll_interval_seconds
        """
    }

    /// Removes the settings.
    package static func remove(from environment: EnvironmentID) -> Statement {
        "DELETE FROM backend.defect_tracker WHERE environment_id = \(environment.rawValue)"
    }

    // MARK: Calling

    package var settings: CompassSettings {
        var settings = CompassSettings(serverURL: serverURL, repository: repository, database: database)
        settings.recordType = recordType
        return settings
    }

    /// Creates a client with the environment's account.
    ///
    /// - Parameters:
    ///   - secrets: Opens the sealed secret.
    ///   - callMax: Timeout of a single HTTP call.
    ///   - change: Modifies the settings of the client.
    /// - Throws: `MissingBackend` if there is no account, or its secret cannot be opened.
    package func client(
        _ client: Client, secrets: SecretBox, callMax: Duration,
        _ change: (inout CompassSettings) -> Void = { _ in }
    ) throws(MissingBackend) -> CompassClient {
        guard let account else { throw MissingBackend("environment \(environment) has no defect account") }
        let secret: String
        do {
            secret = try secrets.openText(account.sealed.bytes, at: SecretContext.defectAccount(environment))
        } catch {
            throw MissingBackend("cannot open the secret of the defect account: \(error)")
        }
        var settings = settings
        settings.callMax = callMax
        change(&settings)
        let credentials: CompassAccount =
            switch account {
            case .password(let user, _): .password(user: user, password: secret)
            case .token: .personalAccessToken(secret)
            }
        return CompassClient(settings, as: credentials, client: client)
    }
}

/// The clients of all environments' accounts. A login is shared by all calls of this process.
package final class DefectTrackerRegistry: Sendable {
    private let client: Client
    private let secrets: SecretBox
    /// Timeout of a single HTTP call.
    package let callMax: Duration
    private let clients = EnvironmentCache<DefectTracker, CompassClient>()

    /// - Parameter secrets: Opens sealed secrets.
    package init(client: Client, secrets: SecretBox, callMax: Duration) {
        self.client = client
        self.secrets = secrets
        self.callMax = callMax
    }

    /// Returns the client of an environment's account, the same one while its settings are unchanged.
    ///
    /// - Throws: `MissingBackend` with the missing configuration, or `PostgresError`.
    package func client(of environment: EnvironmentID, on connection: inout Connection) throws -> CompassClient {
        guard let stored = try DefectTracker.load(environment, on: &connection) else {
            throw MissingBackend("environment \(environment) has no defect tracker")
        }
        return try clients.value(of: environment, from: stored) { stored throws(MissingBackend) in
            try stored.client(client, secrets: secrets, callMax: callMax)
        }
    }

    /// Creates a client with a person's own login, which is not cached. It tries a rejected login only once.
    ///
    /// - Throws: `MissingBackend` if the login's secret cannot be opened.
    package func client(
        of realm: Int32, _ login: OwnDefectLogin, at tracker: DefectTracker
    ) throws(MissingBackend) -> CompassClient {
        let account = try login.account(of: realm, in: tracker.environment, secrets)
        var settings = tracker.settings
        settings.callMax = callMax
        settings.isRefusalFinal = true
        return CompassClient(settings, as: account, client: client)
    }
}
