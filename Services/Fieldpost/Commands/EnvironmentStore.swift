import FoundationEssentials
import Model
import Postgres

/// The SQL of environments and what belongs to them.
enum EnvironmentStore {
    struct Provider {
        let domains: [String]
        let issuer: String
        let audience: String
        let jwksURL: String
    }

    struct Backend {
        let kind: String
        let url: String
        let userName: String
        let passwordVariable: String
    }

    struct Row: Encodable {
        let id: Int32
        let name: String
        let generation: Int64
        let position: Int64
        /// How far the relay has published.
        let published: Int64
        let domains: [String]
        let issuer: String?
        let people: Int64
        /// People who have a realm, and those whose realm is filled.
        let invited: Int64
        let ready: Int64
        let backend: String?
        let backendURL: String?
    }

    /// Adds or updates all of it, as one transaction.
    static func add(
        _ name: String, provider: Provider, backend: Backend, people: [EnvironmentCommand.Person]
    ) throws -> [Statement] {
        return [
            "INSERT INTO realm.environment (name) VALUES (\(name)) ON CONFLICT (name) DO NOTHING",
            """
            INSERT INTO access.provider (environment_id, domains, issuer, audience, jwks_url)
            SELECT id, \(provider.domains), \(provider.issuer), \(provider.audience), \(provider.jwksURL)
            FROM realm.environment WHERE name = \(name)
            ON CONFLICT (environment_id) DO UPDATE SET domains = excluded.domains, issuer = excluded.issuer,
                audience = excluded.audience, jwks_url = excluded.jwks_url
            """,
            """
            INSERT INTO backend.connection (environment_id, kind, url, user_name, password_variable)
            SELECT id, \(backend.kind), \(backend.url), \(backend.userName), \(backend.passwordVariable)
            FROM realm.environment WHERE name = \(name)
            ON CONFLICT (environment_id) DO UPDATE SET kind = excluded.kind, url = excluded.url,
                user_name = excluded.user_name, password_variable = excluded.password_variable
            """,
            try addPeople(people, to: name),
        ]
    }

    /// Adds people to an environment that is there, or brings their references up to date.
    static func addPeople(_ people: [EnvironmentCommand.Person], to name: String) throws -> Statement {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let references = try people.map { JSONBytes(Array(try encoder.encode($0.reference))) }
        return """
            INSERT INTO backend.person (environment_id, email, reference)
            SELECT e.id, p.email, p.reference
            FROM realm.environment e,
                unnest(\(people.map { $0.email.lowercased() }), \(references)) AS p(email, reference)
            WHERE e.name = \(name)
            ON CONFLICT (environment_id, email) DO UPDATE SET reference = excluded.reference
            """
    }

    static func list(on connection: inout Connection) throws -> [Row] {
        try connection.run(
            """
            SELECT e.id, e.name, e.generation, e.position, coalesce(r.position, 0), coalesce(a.domains, '{}'), a.issuer,
                (SELECT count(*) FROM backend.person p WHERE p.environment_id = e.id), coalesce(i.invited, 0),
                coalesce(i.ready, 0), b.kind, b.url
            FROM realm.environment e
            LEFT JOIN realm.relay r ON r.environment_id = e.id
            LEFT JOIN access.provider a ON a.environment_id = e.id
            LEFT JOIN backend.connection b ON b.environment_id = e.id
            LEFT JOIN LATERAL (
                SELECT count(*) AS invited, count(*) FILTER (WHERE (o.fields->>'isInitialized')::boolean) AS ready
                FROM realm.realm m
                JOIN realm.object o ON o.environment_id = m.environment_id AND o.realm_id = m.id
                    AND o.kind = 'Realms' AND NOT o.deleted
                WHERE m.environment_id = e.id AND m.path = '/users'
            ) i ON true
            ORDER BY e.id
            """
        ).map { row in
            Row(
                id: try row.value(0), name: try row.value(1), generation: try row.value(2), position: try row.value(3),
                published: try row.value(4), domains: try row.value(5), issuer: try row.optional(6),
                people: try row.value(7), invited: try row.value(8), ready: try row.value(9),
                backend: try row.optional(10), backendURL: try row.optional(11))
        }
    }

    /// The environment of that name, or the only one there is.
    ///
    /// - Throws: `CommandFailure` when it is not there, or when there are several and none is named.
    static func find(_ name: String?, on connection: inout Connection) throws -> EnvironmentID {
        let rows = try connection.run(
            "SELECT id FROM realm.environment WHERE \(name) IS NULL OR name = \(name) ORDER BY id LIMIT 2")
        guard rows.count > 0 else {
            throw CommandFailure(name.map { "there is no environment \($0)" } ?? "there is no environment")
        }
        guard rows.count == 1 else { throw CommandFailure("there are several environments: give --environment") }
        return EnvironmentID(rawValue: try rows[0].value(0))
    }
}
