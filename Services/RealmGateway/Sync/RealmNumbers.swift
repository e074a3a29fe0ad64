import Model
import ObjectStore
import Postgres
import Synchronization

/// A cache of realms' numbers and paths, shared by all requests. No lock is held during queries.
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

    /// Returns the realms' numbers.
    ///
    /// - Parameter create: Whether a missing realm is created; otherwise it has no number. Only for paths whose count
    ///   is limited by that of people and stored objects.
    func numbers(
        of paths: some Collection<RealmPath>, in environment: EnvironmentID, create: Bool,
        on connection: inout Connection
    ) throws(PostgresError) -> [RealmPath: Int32] {
        var result: [RealmPath: Int32] = [:]
        numbers.withLock { numbers in
            for path in paths { result[path] = numbers[Name(environment: environment, path: path)] }
        }
        let missing = paths.filter { result[$0] == nil }
        if missing.isEmpty { return result }
        var directory = RealmDirectory()
        let read = try directory.ids(of: missing, in: environment, create: create, on: &connection)
        numbers.withLock { numbers in
            if numbers.count + read.count > Self.countMax { numbers.removeAll() }
            for (path, number) in read { numbers[Name(environment: environment, path: path)] = number }
        }
        return result.merging(read) { old, _ in old }
    }

    /// Returns the paths of realms, in at most one round trip. A malformed path is omitted.
    func paths(
        of realms: Set<Int32>, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> [Int32: RealmPath] {
        var result: [Int32: RealmPath] = [:]
        paths.withLock { paths in
            for realm in realms { result[realm] = paths[Number(environment: environment, realm: realm)] }
        }
        let missing = realms.filter { result[$0] == nil }
        if missing.isEmpty { return result }
        var directory = RealmDirectory()
        let read = try directory.realms(of: missing, in: environment, on: &connection).mapValues(\.path)
        paths.withLock { paths in
            if paths.count + read.count > Self.countMax { paths.removeAll() }
            for (realm, path) in read { paths[Number(environment: environment, realm: realm)] = path }
        }
        return result.merging(read) { old, _ in old }
    }

    func number(
        of path: RealmPath, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Int32 {
        guard let number = try numbers(of: [path], in: environment, create: true, on: &connection)[path] else {
            throw PostgresError(sqlState: "P0002", message: "realm \(path) could not be created")
        }
        return number
    }
}
