import Access
import Model
import ObjectStore
import Postgres

/// Reads what a caller may open. It knows the numbers of the realms that say so.
struct AccessReader: Sendable {
    let caller: Caller
    /// The number of a person's own realm; 0 for an integration.
    let own: Int32
    let common: Int32
    private let named: [RealmPath]

    /// - Parameter named: Realms that the caller asks for.
    init(_ caller: Caller, named: [RealmPath] = [], _ numbers: RealmNumbers, on connection: inout Connection) throws {
        self.caller = caller
        let found = try numbers.numbers(
            of: [.common] + (caller.own.map { [$0] } ?? []), in: caller.environment, create: true, on: &connection)
        own = caller.own.flatMap { found[$0] } ?? 0
        common = found[.common] ?? 0
        self.named = named
    }

    var statements: [Statement] { AccessState.load(caller, own: own, common: common, named: named) }

    /// Reads the answers of ``statements``.
    func state(_ answers: some Sequence<Rows>) throws -> AccessState {
        try AccessState(caller, named: named, Array(answers))
    }

    func read(on connection: inout Connection) throws -> AccessState {
        try state(try connection.run(statements))
    }
}
