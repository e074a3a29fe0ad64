internal import FoundationEssentials
import Model
import ObjectStore
package import Postgres
package import Secrets

/// Sends an environment as a stream of lines (decision 0069): first a copy while it is active, then, while it is
/// write-blocked, the changes since and all other tables.
///
/// It holds one page of rows in memory. A repeated export resumes where the destination stopped, or starts from the
/// beginning; then the destination first removes its objects and images.
package struct EnvironmentExport {
    /// The rows of a table to send.
    private enum Choice {
        case all
        /// Objects that changed since a position.
        case changed(since: Int64)
        /// Blobs that were uploaded since a time, in microseconds since 1970.
        case uploaded(since: Int64)
    }

    private let name: String
    private let secrets: SecretBox
    private let transfer: SecretBox
    private let write: ([UInt8]) throws -> Void
    private var move: MoveStore.Move
    private var resume: MoveResume
    private var chain: MoveChain
    /// Number of rows that were sent.
    package private(set) var rowCount = 0
    private let start: MoveResume?
    /// Number of rows that were sent while the environment was write-blocked.
    package private(set) var writeBlockedCount = 0

    /// Maximum time between the timestamp of a transaction and its commit, in microseconds.
    private static let commitMicrosecondsMax: Int64 = 600_000_000

    /// Starts or resumes the move.
    ///
    /// - Parameters:
    ///   - secrets: The keys of stored secrets.
    ///   - transfer: The transfer key.
    ///   - resume: The point where the destination stopped.
    package init(
        _ name: String, secrets: SecretBox, transfer: SecretBox, resume: MoveResume?,
        on connection: inout Connection, write: @escaping ([UInt8]) throws -> Void
    ) throws {
        (self.name, self.secrets, self.transfer, self.write) = (name, secrets, transfer, write)
        try Schema.check(on: &connection, oldest: Schema.version)
        move = try MoveStore.start(name, on: &connection)
        chain = try MoveChain(move: move.id, transfer: transfer)
        let (position, time) = try Self.counter(of: move.environment, on: &connection)
        start = resume
        self.resume = resume ?? MoveResume(position: position, time: time - Self.commitMicrosecondsMax)
    }

    /// Sends everything, and leaves the environment write-blocked.
    ///
    /// - Throws: ``MoveFailure`` if the move is rolled back or discarded meanwhile; then nothing is write-blocked.
    package mutating func run(on connection: inout Connection) throws {
        let check = try transfer.seal(name, at: MoveLine.context(move.id, "check"))
        let founded = try MoveStore.read(
            "SELECT coalesce(founded_as, id) FROM realm.environment WHERE id = \(move.environment.rawValue)",
            on: &connection
        )[0].decode(Int32.self)
        try send(
            .header(
                .init(
                    format: MoveLine.Header.formatCurrent, schema: Schema.version, name: name, foundedAs: founded,
                    move: move.id, check: Data(check), start: start)))
        let since = resume
        // In each stream: the destination needs their names for the numbers of the following objects.
        try send(.ownKinds, .all, on: &connection)
        try copy(on: &connection)
        // Sends changes made meanwhile, to shorten the write-block.
        let (position, _) = try Self.counter(of: move.environment, on: &connection)
        try send(.objects, .changed(since: since.position), on: &connection)
        try MoveStore.writeBlock(move, on: &connection)
        try send(.held)
        let sent = rowCount
        try checkTombstones(since: since.position, on: &connection)
        try send(.objects, .changed(since: position), on: &connection)
        try send(.blobs, .uploaded(since: since.time), on: &connection)
        for table in MovedTable.others { try send(table, .all, on: &connection) }
        try sendSecrets(on: &connection)
        writeBlockedCount = rowCount - sent
        try MoveStore.requireWriteBlock(move, on: &connection)
        try sendEnd(on: &connection)
    }

    /// Copies objects and blobs while the environment is active.
    private mutating func copy(on connection: inout Connection) throws {
        if resume.table == MoveResume.done { return }
        if resume.table != MovedTable.blobs.name {
            try send(.objects, .all, on: &connection, isResumable: true)
            resume.last = nil
        }
        try send(.blobs, .all, on: &connection, isResumable: true)
        (resume.table, resume.last) = (MoveResume.done, nil)
    }

    /// A tombstone that was compacted meanwhile cannot be sent: the destination would keep the object.
    private func checkTombstones(since position: Int64, on connection: inout Connection) throws {
        let compacted = try MoveStore.read(
            "SELECT compacted_position FROM realm.environment WHERE id = \(move.environment.rawValue)",
            on: &connection
        )[0].decode(Int64.self)
        guard compacted <= position else {
            throw MoveFailure(
                "the copy took longer than the retention of tombstones: roll the move back, discard the copy at the "
                    + "destination, and export again")
        }
    }

    // MARK: Sending

    private mutating func send(
        _ table: MovedTable, _ choice: Choice, on connection: inout Connection, isResumable: Bool = false
    ) throws {
        var last = isResumable ? resume.last : nil
        if isResumable { resume.table = table.name }
        while true {
            let rows = try MoveStore.read(page(of: table, choice, after: last), on: &connection)
                .decode(String.self, String.self)
            guard let end = rows.last else { return }
            last = end.1
            if isResumable { resume.last = last }
            let part = MoveLine.Part(table: table.name, count: rows.count, resume: resume)
            try send(.part(part), rows: rows.map { Array($0.0.utf8) })
            rowCount += rows.count
            if rows.count < table.pageCountMax || table.key.isEmpty { return }
        }
    }

    private mutating func send(_ line: MoveLine, rows: [[UInt8]] = []) throws {
        try write(try chain.frame(line, rows: rows))
    }

    /// Returns a page. Rows: a row as JSON without its environment, and its key. An own kind has its name also.
    private func page(of table: MovedTable, _ choice: Choice, after last: String?) -> Statement {
        let key = Statement(
            stringLiteral: "jsonb_build_object(" + table.key.map { "'\($0)', x.\($0)" }.joined(separator: ", ") + ")")
        let name: Statement =
            table.name == MovedTable.ownKinds.name
            ? "|| jsonb_build_object('name', (SELECT k.name FROM realm.kind k WHERE k.number = x.kind))" : ""
        return """
            SELECT (to_jsonb(x) - 'environment_id' \(name))::text, \(key)::text
            FROM (SELECT t.* FROM \(table.sql) t
                WHERE t.environment_id = \(move.environment.rawValue) AND \(isAfter(last, in: table))
                    AND \(condition(choice))
                ORDER BY \(table.order) LIMIT \(Int64(table.pageCountMax))) x
            """
    }

    /// A condition for rows after a key. Each column's value is computed before the scan: only then is the index used.
    private func isAfter(_ last: String?, in table: MovedTable) -> Statement {
        guard let last else { return "true" }
        let values = table.key.map { column -> Statement in
            let name = Statement(stringLiteral: column)
            return "(SELECT l.\(name) FROM json_populate_record(NULL::\(table.sql), \(last)::json) l)"
        }
        let first: Statement = "\(table.columns) > (\(values[0])"
        return "\(values.dropFirst().reduce(first) { "\($0), \($1)" }))"
    }

    private func condition(_ choice: Choice) -> Statement {
        switch choice {
        case .all: "true"
        case .changed(let position): "t.position > \(position)"
        case .uploaded(let time): "t.uploaded_at >= to_timestamp(\(time) / 1000000.0)"
        }
    }

    private mutating func sendSecrets(on connection: inout Connection) throws {
        for sort in SecretStore.Sort.allCases {
            try SecretStore.forEachSecret(sort, of: move.environment, with: secrets, on: &connection) { row, secret in
                let context = SecretStore.place(sort, number: row.number, person: row.person, on: move.id)
                try send(
                    .secret(
                        .init(
                            sort: sort.rawValue, number: row.number, person: row.person, stored: Data(row.sealed.bytes),
                            sealed: Data(try transfer.seal(secret, at: context)))))
            }
        }
    }

    private mutating func sendEnd(on connection: inout Connection) throws {
        let (generation, position) = try MoveStore.read(
            """
            SELECT \(Lineage.nextGeneration), position FROM realm.environment WHERE id = \(move.environment.rawValue)
            """, on: &connection
        )[0].decode(Int64.self, Int64.self)
        try send(
            .end(
                .init(
                    generation: generation, position: position, parts: chain.frameCount + 1, rows: chain.rowCount)))
    }

    /// Returns the counter, and the time in microseconds since 1970.
    private static func counter(
        of environment: EnvironmentID, on connection: inout Connection
    ) throws -> (position: Int64, time: Int64) {
        try MoveStore.read(
            """
            SELECT position, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM realm.environment
            WHERE id = \(environment.rawValue)
            """, on: &connection
        )[0].decode(Int64.self, Int64.self)
    }
}
