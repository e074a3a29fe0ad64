internal import Access
package import BackendProtocol
import Backends
internal import Essentials
import FoundationEssentials
package import HTTPClient
package import Model
package import Postgres
package import Secrets

/// The connection settings of an environment's back end, as stored by `fieldpost environment add`.
package struct BackendConfiguration: Sendable, Equatable {
    package let kind: String
    package let url: String
    package let userName: String
    /// The source of the password.
    package let password: Password
    /// ``TemplateDeclarations`` and the adapter's settings, as JSON.
    private let templates: [UInt8]?
    private let settings: [UInt8]

    package enum Password: Sendable, Equatable {
        /// The environment variable of this process with that name.
        case variable(String)
        /// Sealed for `SecretContext.backendPassword`.
        case sealed([UInt8])
    }

    private let environment: EnvironmentID
    private let environmentName: String

    /// Returns the settings; `nil` if the environment has no back end.
    package static func load(
        _ environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> BackendConfiguration? {
        let rows = try connection.run(
            """
            SELECT c.kind, c.url, c.user_name, c.password_variable, c.password, c.templates::text, c.settings::text,
                e.name
            FROM backend.connection c JOIN realm.environment e ON e.id = c.environment_id
            WHERE c.environment_id = \(environment.rawValue)
            """)
        guard let row = rows.first else { return nil }
        let (kind, url, userName, variable, sealed, templates, settings, name) = try row.decode(
            String.self, String.self, String.self, String?.self, Bytea?.self, String?.self, String.self, String.self)
        guard let password = variable.map(Password.variable) ?? sealed.map({ .sealed($0.bytes) }) else {
            throw PostgresError(sqlState: nil, message: "the back end of environment \(environment) has no password")
        }
        return BackendConfiguration(
            kind: kind, url: url, userName: userName, password: password,
            templates: templates.map { Array($0.utf8) }, settings: Array(settings.utf8), environment: environment,
            environmentName: name)
    }

    /// Selects the revision of the settings. Rows: the revision; none without a back end.
    package static func revision(in environment: EnvironmentID) -> Statement {
        "SELECT revision FROM backend.connection WHERE environment_id = \(environment.rawValue)"
    }

    /// Selects the rate limits of an environment's back end. Rows: calls per second, and calls per second for one
    /// person; `int`, null without a limit.
    package static func rateLimits(of environment: EnvironmentID) -> Statement {
        """
        SELECT calls_per_second, person_calls_per_second FROM backend.connection
        WHERE environment_id = \(environment.rawValue)
        """
    }

    /// Creates the adapter.
    ///
    /// - Parameters:
    ///   - secrets: Opens a sealed password.
    ///   - callMax: Timeout of a single HTTP call.
    /// - Throws: `MissingBackend` with the missing configuration.
    package func make(client: Client, secrets: SecretBox, callMax: Duration) throws(MissingBackend) -> any TimeBackend {
        try BackendKind.named(kind, of: environmentName).adapter(
            BackendKind.Access(
                url: url, user: userName, password: try passwordText(secrets),
                templates: try templates.map { json throws(MissingBackend) in
                    try decoded(TemplateDeclarations.self, json, "templates")
                },
                settings: try decoded([String: String].self, settings, "settings"), client: client, callMax: callMax,
                today: { Timestamp.now().day }))
    }
}

extension BackendConfiguration {
    private func decoded<Value: Decodable>(
        _: Value.Type, _ json: [UInt8], _ name: String
    ) throws(MissingBackend) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(json))
        } catch {
            throw MissingBackend("the back end's \(name) cannot be decoded: \(error)")
        }
    }

    private func passwordText(_ secrets: SecretBox) throws(MissingBackend) -> String {
        switch password {
        case .variable(let name):
            guard let text = ProcessInfo.processInfo.environment[name] else {
                throw MissingBackend("the environment variable \(name) with the back end's password is not set")
            }
            return text
        case .sealed(let bytes):
            do {
                return try secrets.openText(bytes, at: SecretContext.backendPassword(environment))
            } catch {
                throw MissingBackend("the back end's password: \(error)")
            }
        }
    }
}

/// The adapters of all environments' back ends. The state of an adapter, such as a session, is shared by all calls of
/// this process.
package final class BackendRegistry: Sendable {
    private let client: Client
    private let secrets: SecretBox
    /// Timeout of a single HTTP call.
    package let callMax: Duration
    private let adapters = EnvironmentCache<BackendConfiguration, any TimeBackend>()

    /// - Parameter secrets: Opens sealed passwords.
    package init(client: Client, secrets: SecretBox, callMax: Duration) {
        self.client = client
        self.secrets = secrets
        self.callMax = callMax
    }

    /// Returns the adapter of an environment, the same one while its settings are unchanged.
    ///
    /// - Throws: `MissingBackend` with the missing configuration, or `PostgresError`.
    package func adapter(of environment: EnvironmentID, on connection: inout Connection) throws -> any TimeBackend {
        guard let stored = try BackendConfiguration.load(environment, on: &connection) else {
            throw MissingBackend("environment \(environment) has no back end")
        }
        return try adapters.value(of: environment, from: stored) { stored throws(MissingBackend) in
            try stored.make(client: client, secrets: secrets, callMax: callMax)
        }
    }
}

extension BackendPerson {
    /// Returns people of an environment by e-mail, with the back end's identifiers. Unknown people are omitted.
    package static func load(
        _ emails: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [String: BackendPerson] {
        let rows = try connection.run(
            """
            SELECT p.email, r.key, r.value FROM backend.person p, jsonb_each_text(p.reference) r
            WHERE p.environment_id = \(environment.rawValue) AND p.email = ANY (\(emails))
            """)
        var people: [String: BackendPerson] = [:]
        for (email, key, value) in try rows.decode(String.self, String.self, String.self) {
            people[email, default: BackendPerson(email: email, reference: [:])].reference[key] = value
        }
        return people
    }
}
