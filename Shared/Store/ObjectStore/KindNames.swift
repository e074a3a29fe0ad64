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
}
