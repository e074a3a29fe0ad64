import Model
import ObjectStore
import Postgres
import Synchronization

/// The numbers of realms, shared by all requests; no lock is held while PostgreSQL is asked.
final class RealmNumbers: Sendable {
    private struct Name: Hashable {
        let environment: EnvironmentID
        let path: RealmPath
    }

    private struct Number: Hashable {
        let environment: EnvironmentID
        let realm: Int32
    }

    private static let countMax = 200_000
    private let numbers = Mutex<[Name: Int32]>([:])
    private let paths = Mutex<[Number: RealmPath]>([:])

    /// The realms' numbers.
    ///
    /// - Parameter create: Whether a realm that is not there is made. Only for paths of which there are no more than
    ///   people and what was written; without it such a realm has no number.
    func numbers(
        of paths: some Collection<RealmPath>, in environment: EnvironmentID, create: Bool,
        on connection: inout Connection
    ) throws(PostgresError) -> [RealmPath: Int32] {
        var found: [RealmPath: Int32] = [:]
        numbers.withLock { numbers in
            for path in paths { found[path] = numbers[Name(environment: environment, path: path)] }
        }
        let unknown = paths.filter { found[$0] == nil }
        if unknown.isEmpty { return found }
        var directory = RealmDirectory()
        let read = try directory.ids(of: unknown, in: environment, create: create, on: &connection)
        numbers.withLock { numbers in
            if numbers.count + read.count > Self.countMax { numbers.removeAll() }
            for (path, number) in read { numbers[Name(environment: environment, path: path)] = number }
        }
        return found.merging(read) { old, _ in old }
    }

    /// The paths of realms, in at most one round trip. One that is written as no path is has none.
    func paths(
        of realms: Set<Int32>, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Int32: RealmPath] {
        var found: [Int32: RealmPath] = [:]
        paths.withLock { paths in
            for realm in realms { found[realm] = paths[Number(environment: environment, realm: realm)] }
        }
        let unknown = realms.filter { found[$0] == nil }
        if unknown.isEmpty { return found }
        var directory = RealmDirectory()
        let read = try directory.paths(of: unknown, in: environment, on: &connection)
        paths.withLock { paths in
            if paths.count + read.count > Self.countMax { paths.removeAll() }
            for (realm, path) in read { paths[Number(environment: environment, realm: realm)] = path }
        }
        return found.merging(read) { old, _ in old }
    }

    func number(
        of path: RealmPath, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Int32 {
        guard let number = try numbers(of: [path], in: environment, create: true, on: &connection)[path] else {
            throw PostgresError(sqlState: "P0002", message: "realm \(path) could not be made")
        }
        return number
    }
}
