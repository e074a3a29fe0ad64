package import Model
package import Postgres
import Synchronization

/// The kinds of a database by their numbers, with the names of those that environments declare.
///
/// A number is never used for another name, so a name is loaded once. After a restore of the database it may be, but
/// then the services start again.
package final class KindNames: Sendable {
    private let own = Mutex<[Int16: Kind]>([:])

    package init() {}

    /// Returns a kind with its name, and without its declaration.
    ///
    /// - Parameter run: Runs a statement, if the name was not loaded yet.
    /// - Returns: `nil` if this program version does not have the kind.
    package func kind(
        _ number: Int16, _ run: (Statement) throws -> Rows
    ) throws -> Kind? {
        guard OwnKind.numbers.contains(number) else { return Kind(number: number) }
        if let kind = own.withLock({ $0[number] }) { return kind }
        let rows = try run("SELECT name FROM realm.kind WHERE number = \(number)")
        guard let name = try rows.first?.decode(String.self) else { return nil }
        let kind = Kind(number: number, name: name)
        own.withLock { $0[number] = kind }
        return kind
    }

    /// The installation has no number left for another name.
    package struct Exhausted: Error, CustomStringConvertible {
        package var description: String {
            "the installation has declared \(OwnKind.numbers.count) kinds, which is the maximum"
        }
    }

    /// Returns the numbers of names. Names that have none get the next ones, which they keep.
    ///
    /// - Parameter names: Different names.
    /// - Throws: ``Exhausted``, or `PostgresError`.
    package static func numbers(of names: [String], in transaction: inout Transaction) throws -> [String: Int16] {
        try transaction.run("LOCK TABLE realm.kind IN SHARE ROW EXCLUSIVE MODE")
        let numbers = try transaction.run(
            """
            WITH new AS (
                INSERT INTO realm.kind (number, name)
                SELECT n.number, n.name FROM (
                    SELECT f.name, (SELECT greatest(max(number), \(OwnKind.numbers.lowerBound - 1)) FROM realm.kind)
                        + row_number() OVER (ORDER BY f.name) AS number
                    FROM unnest(\(names)) AS f(name)
                    WHERE NOT EXISTS (SELECT FROM realm.kind k WHERE k.name = f.name)
                ) n WHERE n.number <= \(OwnKind.numbers.upperBound)
                RETURNING name, number
            )
            SELECT name, number FROM new UNION ALL SELECT name, number FROM realm.kind WHERE name = ANY (\(names))
            """
        ).decode(String.self, Int16.self)
        guard numbers.count == names.count else { throw Exhausted() }
        return Dictionary(uniqueKeysWithValues: numbers)
    }
}
