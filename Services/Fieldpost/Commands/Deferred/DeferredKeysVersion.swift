import AdminQueries
import ArgumentParser
import Crypto
import Postgres

extension DeferredCommand {
    /// The precondition of a change: the keys still have the version that was displayed.
    struct Precondition: ParsableArguments {
        @Option(name: .customLong("if-version"), help: "Require this version, as `show` or `--dry-run` printed it.")
        var expectedVersion: String?

        /// Returns the rows of a selection, if their version is the expected one.
        ///
        /// - Returns: `nil` without an expected version.
        /// - Throws: `CommandFailure` if the keys changed meanwhile.
        func rows(
            _ selection: DeferredKeyStore.Selection, on connection: inout Connection
        ) throws -> [DeferredKeyStore.Row]? {
            guard let expectedVersion else { return nil }
            let rows = try DeferredKeysVersion.rows(selection, on: &connection)
            guard let rows, DeferredKeysVersion.text(rows) == expectedVersion else {
                throw CommandFailure(
                    "version conflict: the keys changed meanwhile; nothing was changed, list them again")
            }
            return rows
        }
    }
}

/// The version of a set of keys: a text that changes if one of them changes.
enum DeferredKeysVersion {
    /// Maximum number of keys that are held in memory.
    static let countMax = 100_000

    /// Returns all rows of a selection, in the order of the primary key.
    ///
    /// - Returns: `nil` if there are more than ``countMax``.
    static func rows(
        _ selection: DeferredKeyStore.Selection, on connection: inout Connection
    ) throws -> [DeferredKeyStore.Row]? {
        let rows = try DeferredKeyStore.page(selection, after: nil, countMax: countMax + 1, on: &connection)
        return rows.count > countMax ? nil : rows
    }

    /// Returns the version of one key, or a digest of several.
    static func text(_ rows: [DeferredKeyStore.Row]) -> String {
        if rows.count == 1 { return rows[0].version }
        let digest = SHA256.hash(data: Array(rows.map(\.version).joined().utf8))
        return digest.prefix(6).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
