package import Model
package import Postgres

/// A realm that was looked up by its number.
package struct NumberedRealm: Sendable {
    package let path: RealmPath
    /// What it is for: found out once, since the path is read letter by letter for it.
    package let realmClass: RealmClass.Name
}

/// The numbers of realms, kept in memory: a realm's number never changes.
package struct RealmDirectory: Sendable {
    private struct Name: Hashable {
        let environment: EnvironmentID
        let path: RealmPath
    }

    private var ids: [Name: Int32] = [:]
    private var realms: [Int32: NumberedRealm] = [:]

    /// The memory is dropped when it holds more realms than this; it fills again from PostgreSQL.
    private static let countMax = 200_000

    package init() {}

    /// The realm's number.
    ///
    /// - Parameter create: Whether a realm that is not there is made.
    /// - Returns: `nil` when it is not there.
    package mutating func id(
        of path: RealmPath, in environment: EnvironmentID, create: Bool, on connection: inout Connection
    ) throws(PostgresError) -> Int32? {
        try ids(of: [path], in: environment, create: create, on: &connection)[path]
    }

    /// The numbers of several realms in at most one round trip.
    package mutating func ids(
        of wanted: some Collection<RealmPath>, in environment: EnvironmentID, create: Bool,
        on connection: inout Connection
    ) throws(PostgresError) -> [RealmPath: Int32] {
        var found: [RealmPath: Int32] = [:]
        var unknown: [String] = []
        for path in wanted {
            if let id = ids[Name(environment: environment, path: path)] {
                found[path] = id
            } else {
                unknown.append(path.description)
            }
        }
        if unknown.isEmpty { return found }
        if ids.count + unknown.count > Self.countMax {
            ids.removeAll()
            realms.removeAll()
        }
        var statements: [Statement] = []
        if create {
            statements.append(
                """
                INSERT INTO realm.realm (environment_id, path)
                SELECT DISTINCT \(environment.rawValue), u.path
                FROM unnest(\(unknown)) AS u(path) LEFT JOIN LATERAL (
                    SELECT r.id FROM realm.realm r
                    WHERE r.environment_id = \(environment.rawValue) AND r.path = u.path
                    OFFSET 0
                ) r ON true
                WHERE r.id IS NULL ORDER BY 2 ON CONFLICT DO NOTHING
                """)
        }
        statements.append(
            """
            SELECT r.id, r.path
            FROM unnest(\(unknown)) AS u(path) CROSS JOIN LATERAL (
                SELECT * FROM realm.realm r
                WHERE r.environment_id = \(environment.rawValue) AND r.path = u.path
                OFFSET 0
            ) r
            """)
        let rows = try connection.run(statements)[statements.count - 1]
        for (id, text) in try rows.decode(Int32.self, String.self) {
            guard let path = RealmPath(text) else { continue }
            remember(id, path, environment)
            found[path] = id
        }
        return found
    }

    /// The paths of realms by number, in at most one round trip.
    package mutating func paths(
        of wanted: some Collection<Int32>, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Int32: RealmPath] {
        try realms(of: wanted, in: environment, on: &connection).mapValues(\.path)
    }

    /// Realms by number, with what they are for, in at most one round trip.
    package mutating func realms(
        of wanted: some Collection<Int32>, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Int32: NumberedRealm] {
        let unknown = wanted.filter { realms[$0] == nil }
        if !unknown.isEmpty {
            let rows = try connection.run(
                """
                SELECT id, path FROM realm.realm
                WHERE environment_id = \(environment.rawValue) AND id = ANY (\(Array(unknown)))
                """)
            for (id, text) in try rows.decode(Int32.self, String.self) {
                guard let path = RealmPath(text) else { continue }
                remember(id, path, environment)
            }
        }
        var found: [Int32: NumberedRealm] = [:]
        for id in wanted { found[id] = realms[id] }
        return found
    }

    private mutating func remember(_ id: Int32, _ path: RealmPath, _ environment: EnvironmentID) {
        ids[Name(environment: environment, path: path)] = id
        realms[id] = NumberedRealm(path: path, realmClass: path.realmClass.name)
    }
}
