package import BackendProtocol
import FoundationEssentials
package import Model
package import Postgres

/// The SQL of environments and their settings.
package enum EnvironmentStore {
    package struct Row: Encodable {
        package let id: Int32
        package let name: String
        package let generation: Int64
        package let position: Int64
        /// The position up to which the relay has published.
        package let published: Int64
        package let domains: [String]
        package let issuer: String?
        package let people: Int64
        /// People with a realm, and those whose realm is initialised.
        package let invited: Int64
        package let ready: Int64
        package let backend: String?
        package let backendURL: String?
        /// The state of a transfer to or from another installation; `nil` if there is none.
        package let move: String?

        private enum CodingKeys: String, CodingKey {
            case id, name, generation, position, published, domains, issuer, people, invited, ready, backend, move
            case backendURL = "backendUrl"
        }
    }

    /// Returns the numbers of people who were invited or have logged in.
    ///
    /// - Throws: ``EnvironmentFailure`` if one of them is unknown.
    package static func people(
        _ emails: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [Int32] {
        let addresses = Set(emails.map(EmailAddress.lowered)).sorted()
        let rows = try connection.run(
            """
            SELECT id, email FROM access.person
            WHERE environment_id = \(environment.rawValue) AND email = ANY (\(addresses))
            """)
        let people = try rows.decode(Int32.self, String.self)
        let existing = Set(people.map(\.1))
        if let missing = addresses.first(where: { !existing.contains($0) }) {
            throw EnvironmentFailure("\(missing) is not one of the environment's people")
        }
        return people.map(\.0)
    }

    /// Loads an environment's settings; `nil` if it does not exist.
    package static func load(_ name: String, on connection: inout Connection) throws -> StoredEnvironment? {
        let rows = try connection.run(
            """
            SELECT e.id,
                coalesce(
                    (SELECT array_agg(domain ORDER BY domain) FROM access.domain WHERE environment_id = e.id), '{}'),
                coalesce(
                    (SELECT array_agg(email ORDER BY email) FROM access.address WHERE environment_id = e.id), '{}'),
                p.issuer IS NOT NULL, coalesce(p.issuer, ''), coalesce(p.audience, ''), coalesce(p.jwks_url, ''),
                p.discovery_url, p.client_id, p.client_secret, p.scopes, p.initialise_on, p.hide_unknown,
                p.address_vouched_by, \(DeletionRetention.column(of: "p")),
                b.kind, coalesce(b.url, ''), coalesce(b.user_name, ''), b.password_variable,
                b.password, b.poll_interval_seconds, b.full_poll_interval_seconds, b.calls_per_second,
                b.person_calls_per_second, b.settings::text, b.templates::text
            FROM realm.environment e
            LEFT JOIN access.provider p ON p.environment_id = e.id
            LEFT JOIN backend.connection b ON b.environment_id = e.id
            WHERE e.name = \(name)
            """)
        return try rows.first.map { try StoredEnvironment(name: name, $0) }
    }

    /// Returns the statements that store all settings.
    package static func save(_ environment: StoredEnvironment) throws -> [Statement] {
        let (name, e) = (environment.name, environment)
        return [
            "INSERT INTO realm.environment (name) VALUES (\(name)) ON CONFLICT (name) DO NOTHING",
            """
            INSERT INTO access.provider (environment_id, issuer, audience, jwks_url, discovery_url, client_id,
                client_secret, scopes, initialise_on, hide_unknown, address_vouched_by, deleted_days)
            SELECT id, \(e.issuer), \(e.audience), \(e.jwksURL), \(e.discoveryURL), \(e.clientID),
                \(e.clientSecret), \(e.scopes), \(e.initialiseOn), \(e.hidesUnknown), \(e.addressVerifiedBy),
                \(e.deletedDays)
            FROM realm.environment WHERE name = \(name)
            ON CONFLICT (environment_id) DO UPDATE SET issuer = excluded.issuer,
                audience = excluded.audience, jwks_url = excluded.jwks_url, discovery_url = excluded.discovery_url,
                client_id = excluded.client_id, client_secret = excluded.client_secret, scopes = excluded.scopes,
                initialise_on = excluded.initialise_on, hide_unknown = excluded.hide_unknown,
                address_vouched_by = excluded.address_vouched_by, deleted_days = excluded.deleted_days
            """,
            try connect(e),
            """
            DELETE FROM access.domain d USING realm.environment e
            WHERE e.name = \(name) AND d.environment_id = e.id AND d.domain <> ALL (\(e.domains))
            """,
            """
            INSERT INTO access.domain (domain, environment_id)
            SELECT d, e.id FROM realm.environment e, unnest(\(e.domains)) AS u(d)
            WHERE e.name = \(name) AND NOT EXISTS (
                SELECT FROM access.domain o WHERE o.domain = d AND o.environment_id = e.id)
            """,
            """
            DELETE FROM access.address a USING realm.environment e
            WHERE e.name = \(name) AND a.environment_id = e.id AND a.email <> ALL (\(e.addresses))
            """,
            """
            INSERT INTO access.address (email, environment_id)
            SELECT a, e.id FROM realm.environment e, unnest(\(e.addresses)) AS u(a)
            WHERE e.name = \(name) AND NOT EXISTS (
                SELECT FROM access.address o WHERE o.email = a AND o.environment_id = e.id)
            """,
        ]
    }

    /// Returns the statement that stores the back-end connection, or deletes it if there is no back end.
    private static func connect(_ e: StoredEnvironment) throws -> Statement {
        guard e.hasBackend else {
            return """
                DELETE FROM backend.connection
                WHERE environment_id = (SELECT id FROM realm.environment WHERE name = \(e.name))
                """
        }
        let settings = JSONBytes(Array(try JSONEncoder().encode(e.backendSettings)))
        return """
            INSERT INTO backend.connection
                (environment_id, kind, url, user_name, password_variable, password, poll_interval_seconds,
                full_poll_interval_seconds, calls_per_second, person_calls_per_second, settings, templates)
            SELECT id, \(e.backend), \(e.backendURL), \(e.backendUser), \(e.backendPasswordVariable),
                \(e.backendPassword), \(e.pollSeconds), \(e.fullPollSeconds), \(e.callsPerSecond),
                \(e.personCallsPerSecond), \(settings), \(e.templates)::jsonb
            FROM realm.environment WHERE name = \(e.name)
            ON CONFLICT (environment_id) DO UPDATE SET kind = excluded.kind, url = excluded.url,
                user_name = excluded.user_name, password_variable = excluded.password_variable,
                password = excluded.password, poll_interval_seconds = excluded.poll_interval_seconds,
                full_poll_interval_seconds = excluded.full_poll_interval_seconds,
                calls_per_second = excluded.calls_per_second,
                person_calls_per_second = excluded.person_calls_per_second, settings = excluded.settings,
                templates = excluded.templates, revision = backend.connection.revision + 1
            """
    }

    /// Creates the environment if necessary and returns its number, so that secrets can be sealed for it before `save`.
    package static func make(_ name: String, on connection: inout Connection) throws -> EnvironmentID {
        let rows = try connection.run([
            "INSERT INTO realm.environment (name) VALUES (\(name)) ON CONFLICT (name) DO NOTHING",
            "SELECT id FROM realm.environment WHERE name = \(name)",
        ])[1]
        return try rows[0].decode(EnvironmentID.self)
    }

    /// Returns a description of a domain, address or issuer that another environment uses; `nil` if there is none.
    /// Sharing one would merge the people of both environments.
    package static func conflict(of environment: StoredEnvironment, on connection: inout Connection) throws -> String? {
        let rows = try connection.run(
            """
            SELECT u.what, e.name FROM (
                SELECT 'domain ' || domain AS what, environment_id FROM access.domain
                    WHERE domain = ANY (\(environment.domains))
                UNION ALL SELECT 'address ' || email, environment_id FROM access.address
                    WHERE email = ANY (\(environment.addresses))
                UNION ALL SELECT 'issuer ' || issuer, environment_id FROM access.provider
                    WHERE issuer = \(environment.issuer)
            ) u JOIN realm.environment e ON e.id = u.environment_id
            WHERE e.name <> \(environment.name) LIMIT 1
            """)
        guard let (what, name) = try rows.first?.decode(String.self, String.self) else { return nil }
        return "the \(what) belongs to the environment \(name)"
    }

    /// Limits for edits, which may wait for another edit of the same environment that calls the identity provider.
    package static var limits: Limits {
        var limits = Limits()
        (limits.lockMax, limits.statementMax) = (.seconds(60), .seconds(90))
        return limits
    }

    /// Locks the environment against other edits until the connection closes, so that settings that are not given keep
    /// their values.
    package static func lock(_ name: String, on connection: inout Connection) throws {
        do {
            try connection.run("SELECT pg_advisory_lock(\(lockSpace), hashtext(\(name)))")
        } catch {
            guard error.sqlState == "55P03" else { throw error }
            throw EnvironmentFailure("another edit of \(name) is in progress; retry later")
        }
    }

    private static let lockSpace: Int32 = 0x656E_7669

    /// Returns the statement that adds people to an existing environment or updates their references.
    package static func addPeople(_ people: [BackendPerson], to name: String) throws -> Statement {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let references = try people.map { JSONBytes(Array(try encoder.encode($0.reference))) }
        return """
            INSERT INTO backend.person (environment_id, email, reference)
            SELECT e.id, p.email, p.reference
            FROM realm.environment e,
                unnest(\(people.map { EmailAddress.lowered($0.email) }), \(references)) AS p(email, reference)
            WHERE e.name = \(name)
            ON CONFLICT (environment_id, email) DO UPDATE SET reference = excluded.reference
            """
    }

    package static func names(on connection: inout Connection) throws -> [String] {
        try connection.run("SELECT name FROM realm.environment ORDER BY id").decode(String.self)
    }

    package static func list(on connection: inout Connection) throws -> [Row] {
        let moves = try moves(on: &connection)
        return try connection.run(
            """
            SELECT e.id, e.name, e.generation, e.position, coalesce(r.position, 0),
                coalesce(
                    (SELECT array_agg(domain ORDER BY domain) FROM access.domain WHERE environment_id = e.id), '{}'),
                a.issuer,
                (SELECT count(*) FROM backend.person p WHERE p.environment_id = e.id), coalesce(i.invited, 0),
                coalesce(i.ready, 0), b.kind, b.url
            FROM realm.environment e
            LEFT JOIN realm.relay r ON r.environment_id = e.id
            LEFT JOIN access.provider a ON a.environment_id = e.id
            LEFT JOIN backend.connection b ON b.environment_id = e.id
            LEFT JOIN LATERAL (
                SELECT count(*) AS invited, count(*) FILTER (WHERE (o.fields::json->>'isInitialized')::boolean) AS ready
                FROM realm.realm m
                JOIN store.object o ON o.environment_id = m.environment_id AND o.realm_id = m.id
                    AND o.kind = \(Kind.realms) AND NOT o.deleted
                WHERE m.environment_id = e.id AND m.path = '/users'
            ) i ON true
            ORDER BY e.id
            """
        ).map { row in
            var columns = row.columns
            let id: Int32 = try columns.next()
            let environment = Row(
                id: id, name: try columns.next(), generation: try columns.next(),
                position: try columns.next(), published: try columns.next(), domains: try columns.next(),
                issuer: try columns.next(), people: try columns.next(), invited: try columns.next(),
                ready: try columns.next(), backend: try columns.next(), backendURL: try columns.next(),
                move: moves[id])
            try columns.end()
            return environment
        }
    }

    /// The state of the transfer in row `m`. An interrupted rollback still counts as `held`: the counter's write block
    /// is removed last.
    package static let moveState: Statement = """
        CASE WHEN m.state = 'copying' AND EXISTS (SELECT FROM pg_trigger t
            WHERE t.tgrelid = 'realm.environment'::regclass AND t.tgname = 'moving_write_' || m.environment_id)
        THEN 'held' ELSE m.state END
        """

    /// Returns the states of unfinished transfers by environment.
    ///
    /// - Returns: Empty if the schema predates transfers.
    private static func moves(on connection: inout Connection) throws(PostgresError) -> [Int32: String] {
        let rows = try connection.runIfTableExists(
            "SELECT m.environment_id, \(moveState) FROM realm.move m WHERE m.state <> 'begun'")
        return Dictionary(uniqueKeysWithValues: try rows?.decode(Int32.self, String.self) ?? [])
    }

    /// Returns the environment with this name, or the only one if no name is given.
    ///
    /// - Throws: ``EnvironmentFailure`` if it does not exist, or if there are several and no name is given.
    package static func find(_ name: String?, on connection: inout Connection) throws -> EnvironmentID {
        let rows = try connection.run(
            "SELECT id, name FROM realm.environment WHERE \(name) IS NULL OR name = \(name) ORDER BY name LIMIT 11")
        let environments = try rows.decode(EnvironmentID.self, String.self)
        guard let first = environments.first else {
            throw EnvironmentFailure(name.map { "environment \($0) does not exist" } ?? "no environment exists")
        }
        guard environments.count == 1 else {
            let names =
                environments.prefix(10).map(\.1).joined(separator: ", ") + (environments.count > 10 ? ", …" : "")
            throw EnvironmentFailure("there are several environments, \(names): give --environment")
        }
        return first.0
    }

    /// Loads an environment's settings, and returns them with its id.
    ///
    /// - Throws: ``EnvironmentFailure`` if it does not exist.
    package static func existing(
        _ name: String, on connection: inout Connection
    ) throws -> (stored: StoredEnvironment, id: EnvironmentID) {
        guard let stored = try load(name, on: &connection), let id = stored.id else {
            throw EnvironmentFailure("environment \(name) does not exist")
        }
        return (stored, id)
    }
}
