import Model
import Postgres
import Realms
import Synchronization

/// The numbers of realms, shared by all requests; no lock is held while PostgreSQL is asked.
final class RealmNumbers: Sendable {
    private struct Name: Hashable {
        let environment: EnvironmentID
        let path: RealmPath
    }

    private static let countMax = 200_000
    private let numbers = Mutex<[Name: Int32]>([:])

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

    func number(
        of path: RealmPath, in environment: EnvironmentID, on connection: inout Connection
    ) throws(PostgresError) -> Int32 {
        guard let number = try numbers(of: [path], in: environment, create: true, on: &connection)[path] else {
            throw PostgresError(sqlState: "P0002", message: "realm \(path) could not be made")
        }
        return number
    }
}
