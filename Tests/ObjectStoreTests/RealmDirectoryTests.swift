import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// The cache of realms' numbers.
@Suite(.ownThreads) struct RealmDirectoryTests {
    /// An environment that moved here keeps its realms' numbers, which another environment may have too.
    @Test func equalNumbersOfTwoEnvironmentsAreDistinct() throws {
        var connection = try Connection(makeFoundationDatabase())
        try connection.run([
            "INSERT INTO realm.environment (id, name) VALUES (1, 'acme'), (2, 'tock')",
            "INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 7, '/common'), (2, 7, '/manager')",
        ])
        var directory = RealmDirectory()
        for (number, path) in [(Int32(1), RealmPath.common), (2, .manager)] {
            let realms = try directory.realms(of: [7], in: EnvironmentID(rawValue: number), on: &connection)
            #expect(realms[7]?.path == path)
        }
    }
}
