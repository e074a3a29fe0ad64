package import Model
package import Postgres

/// A realm's path and class.
package struct NumberedRealm: Sendable {
    package let path: RealmPath
    /// The realm's class, computed once because it is parsed from the path.
    package let realmClass: RealmClass.Name
}

/// A cache of the numbers of realms, which never change.
package struct RealmDirectory: Sendable {
    private struct Name: Hashable {
        let environment: EnvironmentID
        let path: RealmPath
    }

    /// A number is unique within its environment only: one that moved here keeps its realms' numbers.
    private struct Number: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    private var ids: [Name: Int32] = [:]
    private var realms: [Number: NumberedRealm] = [:]

    /// Maximum number of cached realms, after which the cache is cleared.
    private static let countMax = 200_000

    package init() {}

    /// Returns the realm's number.
    ///
    /// - Parameter create: Whether to create a missing realm.
    /// - Returns: `nil` if the realm does not exist.
    package mutating func id(
        of path: RealmPath, in environment: EnvironmentID, create: Bool, on connection: inout Connection
    ) throws(PostgresError) -> Int32? {
        try ids(of: [path], in: environment, create: create, on: &connection)[path]
    }

    /// Returns the numbers of several realms, in at most one round trip.
    package mutating func ids(
        of paths: some Collection<RealmPath>, in environment: EnvironmentID, create: Bool,
        on connection: inout Connection
    ) throws(PostgresError) -> [RealmPath: Int32] {
        var numbers: [RealmPath: Int32] = [:]
        var missing: [String] = []
        for path in paths {
            if let id = ids[Name(environment: environment, path: path)] {
                numbers[path] = id
            } else {
                missing.append(path.description)
            }
        }
        if missing.isEmpty { return numbers }
        makeRoom(for: missing.count)
        var statements: [Statement] = []
        if create {
            statements.append(
                """
                INSERT INTO realm.realm (environment_id, path)
                SELECT DISTINCT \(environment.rawValue), u.path
                FROM unnest(\(missing)) AS u(path) LEFT JOIN LATERAL (
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
            FROM unnest(\(missing)) AS u(path) CROSS JOIN LATERAL (
                SELECT * FROM realm.realm r
                WHERE r.environment_id = \(environment.rawValue) AND r.path = u.path
                OFFSET 0
            ) r
            """)
        let rows = try connection.run(statements)[statements.count - 1]
        for (id, text) in try rows.decode(Int32.self, String.self) {
            guard let path = RealmPath(text) else { continue }
            cache(id, path, environment)
            numbers[path] = id
        }
        return numbers
    }

    /// Returns realms by number, in at most one round trip.
    package mutating func realms(
        of numbers: some Collection<Int32>, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Int32: NumberedRealm] {
        makeRoom(for: numbers.count)
        let missing = numbers.filter { realms[Number(environment: environment, realm: $0)] == nil }
        if !missing.isEmpty {
            let rows = try connection.run(
                """
                SELECT id, path FROM realm.realm
                WHERE environment_id = \(environment.rawValue) AND id = ANY (\(Array(missing)))
                """)
            for (id, text) in try rows.decode(Int32.self, String.self) {
                guard let path = RealmPath(text) else { continue }
                cache(id, path, environment)
            }
        }
        var result: [Int32: NumberedRealm] = [:]
        for id in numbers { result[id] = realms[Number(environment: environment, realm: id)] }
        return result
    }

    private mutating func makeRoom(for count: Int) {
        if max(ids.count, realms.count) + count <= Self.countMax { return }
        ids.removeAll()
        realms.removeAll()
    }

    private mutating func cache(_ id: Int32, _ path: RealmPath, _ environment: EnvironmentID) {
        ids[Name(environment: environment, path: path)] = id
        let number = Number(environment: environment, realm: id)
        realms[number] = NumberedRealm(path: path, realmClass: path.realmClass.name)
    }
}
