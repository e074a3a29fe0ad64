internal import FoundationEssentials
import Model
import ObjectStore
package import Postgres
package import Secrets

/// Sends an environment as a stream of lines (decision 0069): a copy while it works, then, while it is held, what has
/// changed since and all that is not objects.
///
/// It holds one page of rows at a time. Run again it goes on from where the other side says that it stopped, or from
/// the beginning, before which the other side removes what it has of objects and images.
package struct EnvironmentExport {
    /// What of a table is sent.
    private enum Choice {
        case all
        /// Objects that changed since a position.
        case changed(since: Int64)
        /// Blobs that were sent since a time, in microseconds since 1970.
        case uploaded(since: Int64)
    }

    private let name: String
    private let secrets: SecretBox
    private let transfer: SecretBox
    private let write: ([UInt8]) throws -> Void
    private var move: MoveStore.Move
    private var resume: MoveResume
    private var chain: MoveChain
    /// How many rows were sent.
    package private(set) var rowCount = 0
    private let start: MoveResume?
    /// How many were sent while it was held.
    package private(set) var heldCount = 0

    /// A transaction may commit so long after the time that it wrote, in microseconds.
    private static let commitMicrosecondsMax: Int64 = 600_000_000

    /// Begins the move, or goes on with it.
    ///
    /// - Parameters:
    ///   - secrets: What secrets are sealed with here.
    ///   - transfer: What they are sealed with on their way.
    ///   - resume: Where the other side stopped.
    package init(
        _ name: String, secrets: SecretBox, transfer: SecretBox, resume: MoveResume?,
        on connection: inout Connection, write: @escaping ([UInt8]) throws -> Void
    ) throws {
        (self.name, self.secrets, self.transfer, self.write) = (name, secrets, transfer, write)
        try Schema.check(on: &connection, oldest: Schema.version)
        move = try MoveStore.leave(name, on: &connection)
        chain = try MoveChain(move: move.id, transfer: transfer)
        let (position, time) = try Self.counter(of: move.environment, on: &connection)
        start = resume
        self.resume = resume ?? MoveResume(position: position, time: time - Self.commitMicrosecondsMax)
    }

    /// Sends all of it, and leaves the environment held.
    ///
    /// - Throws: ``MoveFailure`` when it is taken back, or discarded, meanwhile; nothing is held then.
    package mutating func run(on connection: inout Connection) throws {
        let check = try transfer.seal(name, at: MoveLine.place(move.id, "check"))
        let founded = try MoveStore.read(
            "SELECT coalesce(founded_as, id) FROM realm.environment WHERE id = \(move.environment.rawValue)",
            on: &connection
        )[0].decode(Int32.self)
        try send(
            .header(
                .init(
                    format: MoveLine.Header.formatNow, schema: Schema.version, name: name, foundedAs: founded,
                    move: move.id, check: Data(check), start: start)))
        let since = resume
        try copy(on: &connection)
        // What changed meanwhile, so that little is left for when it is held.
        let (position, _) = try Self.counter(of: move.environment, on: &connection)
        try send(.objects, .changed(since: since.position), on: &connection)
        try MoveStore.hold(move, on: &connection)
        try send(.held)
        let sent = rowCount
        try checkTombstones(since: since.position, on: &connection)
        try send(.objects, .changed(since: position), on: &connection)
        try send(.blobs, .uploaded(since: since.time), on: &connection)
        for table in MovedTable.others { try send(table, .all, on: &connection) }
        try sendSecrets(on: &connection)
        heldCount = rowCount - sent
        try MoveStore.requireHeld(move, on: &connection)
        try sendEnd(on: &connection)
    }

    /// The copy of what is there, while the environment works.
    private mutating func copy(on connection: inout Connection) throws {
        if resume.table == MoveResume.done { return }
        if resume.table != MovedTable.blobs.name {
            try send(.objects, .all, on: &connection, tells: true)
            resume.last = nil
        }
        try send(.blobs, .all, on: &connection, tells: true)
        (resume.table, resume.last) = (MoveResume.done, nil)
    }

    /// A tombstone that was removed since cannot be sent: the other side would keep the object for ever.
    private func checkTombstones(since position: Int64, on connection: inout Connection) throws {
        let compacted = try MoveStore.read(
            "SELECT compacted_position FROM realm.environment WHERE id = \(move.environment.rawValue)",
            on: &connection
        )[0].decode(Int64.self)
        guard compacted <= position else {
            throw MoveFailure(
                "the copy took longer than tombstones are kept: take the environment back, discard what arrived, and "
                    + "begin again")
        }
    }

    // MARK: Sending

    private mutating func send(
        _ table: MovedTable, _ choice: Choice, on connection: inout Connection, tells: Bool = false
    ) throws {
        var last = tells ? resume.last : nil
        if tells { resume.table = table.name }
        while true {
            let rows = try MoveStore.read(page(of: table, choice, after: last), on: &connection)
                .decode(String.self, String.self)
            guard let end = rows.last else { return }
            last = end.1
            if tells { resume.last = last }
            let part = MoveLine.Part(table: table.name, count: rows.count, resume: resume)
            try send(.part(part), rows: rows.map { Array($0.0.utf8) })
            rowCount += rows.count
            if rows.count < table.pageCountMax || table.key.isEmpty { return }
        }
    }

    private mutating func send(_ line: MoveLine, rows: [[UInt8]] = []) throws {
        try write(try chain.frame(line, rows: rows))
    }

    /// Rows: a row as JSON without its environment, and its key.
    private func page(of table: MovedTable, _ choice: Choice, after last: String?) -> Statement {
        let key = Statement(
            stringLiteral: "jsonb_build_object(" + table.key.map { "'\($0)', x.\($0)" }.joined(separator: ", ") + ")")
        return """
            SELECT (to_jsonb(x) - 'environment_id')::text, \(key)::text
            FROM (SELECT t.* FROM \(table.sql) t
                WHERE t.environment_id = \(move.environment.rawValue) AND \(isAfter(last, in: table))
                    AND \(condition(choice))
                ORDER BY \(table.order) LIMIT \(Int64(table.pageCountMax))) x
            """
    }

    /// Rows beyond a key. Each of its columns is a value of its own before the rows are looked for: only so the index
    /// is read from there on.
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
            try SecretStore.forEachSecret(sort, of: move.environment, with: secrets, on: &connection) {
                try send(
                    .secret(
                        .init(
                            sort: sort.rawValue, number: $0.number, person: $0.person, stored: Data($0.stored.bytes),
                            sealed: Data(try transfer.seal($0.secret, at: $0.place(sort, on: move.id))))))
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

    /// The counter, and the time in microseconds since 1970.
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

extension MoveResume {
    /// Stands for a table's name when the copy is whole.
    static let done = "-"
}
