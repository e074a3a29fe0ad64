import AdminQueries
import ArgumentParser
import Crypto
import Postgres

extension ParkedCommand {
    /// What is changed is what somebody saw.
    struct Guarded: ParsableArguments {
        @Option(
            help: """
                Only while they are parked as they were shown: what `show` or `--dry-run` printed after --seen.
                """)
        var seen: String?

        /// The rows of a selection, as they were seen.
        ///
        /// - Returns: `nil` when nothing is said of what was seen.
        /// - Throws: When they are parked otherwise by now.
        func rows(_ selection: ParkedStore.Selection, on connection: inout Connection) throws -> [ParkedStore.Row]? {
            guard let seen else { return nil }
            let rows = try ParkedSeen.rows(selection, on: &connection)
            guard let rows, ParkedSeen.text(rows) == seen else {
                throw CommandFailure("what is parked is not what was shown, and nothing was changed: look again")
            }
            return rows
        }
    }
}

/// Which keys somebody saw, as a text that is another one when one of them is parked otherwise.
enum ParkedSeen {
    /// Keys that are kept in memory at most.
    static let countMax = 100_000

    /// All of a selection, in the order of the primary key.
    ///
    /// - Returns: `nil` when there are more than ``countMax``.
    static func rows(
        _ selection: ParkedStore.Selection, on connection: inout Connection
    ) throws -> [ParkedStore.Row]? {
        let rows = try ParkedStore.page(selection, after: nil, countMax: countMax + 1, on: &connection)
        return rows.count > countMax ? nil : rows
    }

    /// Of one key its version.
    static func text(_ rows: [ParkedStore.Row]) -> String {
        if rows.count == 1 { return rows[0].version }
        let digest = SHA256.hash(data: Array(rows.map(\.version).joined().utf8))
        return digest.prefix(6).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
