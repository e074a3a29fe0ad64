internal import FoundationEssentials
import Model
import ObjectStore
package import Postgres
package import Secrets

/// Imports the stream of a move (decision 0069), page by page, each in its own transaction.
///
/// Imported pages are kept if the stream is cut: ``resume`` is the point where the export resumes. The environment is
/// inactive until its activation (``MoveActivation``).
package struct EnvironmentImport {
    /// Maximum size of a line: the largest encoded rows.
    package static let lineBytesMax = 1 << 27

    private let transfer: SecretBox
    private var reader: MoveStreamReader
    private var move: MoveStore.Move?
    /// The point where the export resumes; `nil`: the beginning.
    package private(set) var resume: MoveResume?
    /// Whether the stream resumes an earlier one.
    private var isResumed = false
    private var stagedCount: Int32 = 0
    /// The number here of each own kind, by its number at the source.
    private var kinds: [Int16: Int16] = [:]
    package private(set) var rowCount = 0
    package private(set) var name = ""

    /// - Parameters:
    ///   - transfer: The key that authenticates the stream.
    ///   - next: Returns the next line with its end; one without an end was cut. `nil`: no line is left.
    package init(transfer: SecretBox, next: @escaping () throws -> [UInt8]?) {
        (self.transfer, reader) = (transfer, MoveStreamReader(next: next))
    }

    /// Imports the complete stream.
    ///
    /// - Returns: The receipt, which the cut-over at the source requires.
    /// - Throws: ``MoveStreamFailure``, ``MoveFailure`` or `PostgresError`.
    package mutating func run(on connection: inout Connection) throws -> String {
        try start(reader.header(transfer), on: &connection)
        let move = try current()
        // A complete copy is not imported again: the stream is verified, and the receipt, which may have been lost, is
        // returned again.
        let isComplete = move.state == .whole
        while true {
            let (line, rows) = try reader.frame()
            switch line {
            case .header: throw MoveFailure("the stream has two headers")
            case .part(let part): if !isComplete { try take(part, rows, on: &connection) }
            case .held: if !isComplete { try removeStaged(on: &connection) }
            case .secret: if !isComplete { try stage("secret", [line.json], on: &connection) }
            case .end(let end):
                try reader.finish(end)
                if !isComplete { try finish(end, on: &connection) }
                return try transfer.token("whole", of: move)
            }
        }
    }

    private func current() throws -> MoveStore.Move {
        guard let move else { throw MoveFailure("this is not an environment's stream") }
        return move
    }

    private mutating func start(_ header: MoveLine.Header, on connection: inout Connection) throws {
        try Schema.check(on: &connection, oldest: Schema.version)
        name = header.name
        try MoveStore.lockArriving(name, on: &connection)
        if try MoveStore.find(name, on: &connection) == nil {
            try connection.transaction { transaction in
                try transaction.run([
                    // Without a generation it is inactive (`EnvironmentCounter.works`).
                    """
                    INSERT INTO realm.environment (name, founded_as, generation)
                    VALUES (\(name), \(header.foundedAs), 0)
                    """,
                    """
                    INSERT INTO realm.move (environment_id, move_id, state)
                    SELECT id, \(header.move)::text::uuid, 'arriving' FROM realm.environment WHERE name = \(name)
                    """,
                ])
            }
        }
        guard let existing = try MoveStore.find(name, on: &connection), existing.id == header.move else {
            throw MoveFailure("another move of \(name) is or was in progress here; discard it first")
        }
        switch existing.state {
        case .arriving: try resume(from: header.start, of: existing, on: &connection)
        // Its receipt is requested again.
        case .whole: break
        case .begun: throw MoveFailure("\(name) is active here")
        case .copying, .held, .left: throw MoveFailure("a move of \(name) from here is in progress")
        }
        move = existing
    }

    /// Checks that a resumed stream continues where the import stopped. A new stream requires empty tables, because no
    /// stream has deletions since an earlier copy.
    private mutating func resume(
        from start: MoveResume?, of move: MoveStore.Move, on connection: inout Connection
    ) throws {
        let environment = move.environment.rawValue
        guard let start else {
            // In one transaction, so that no stream resumes an earlier copy that was removed.
            try connection.run(
                [MovedTable.objects, .blobs, .ownKinds].map {
                    "DELETE FROM \($0.sql) WHERE environment_id = \(environment)"
                } + ["UPDATE realm.move SET resume = NULL WHERE environment_id = \(environment)"])
            return
        }
        let stopped = try connection.run("SELECT resume FROM realm.move WHERE environment_id = \(environment)")[0]
            .decode(String?.self)
        guard stopped.flatMap({ MoveResume(text: $0) }) == start else {
            throw MoveFailure("no import stopped at this point: export without --resume")
        }
        (resume, isResumed) = (start, true)
    }

    private mutating func take(
        _ part: MoveLine.Part, _ lines: [[UInt8]], on connection: inout Connection
    ) throws {
        guard let table = MovedTable.named(part.table) else {
            throw MoveFailure("the stream has rows of \(part.table), an unknown table here")
        }
        switch table.arrival {
        case .immediate:
            let rows = "[" + lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",") + "]"
            let move = try current()
            if table.name == MovedTable.ownKinds.name { try number(lines, on: &connection) }
            try connection.run([
                Self.insert(rows, into: table, of: move, kinds: kinds),
                """
                UPDATE realm.move SET resume = \(part.resume.text) WHERE environment_id = \(move.environment.rawValue)
                """,
            ])
            resume = part.resume
        // Each stream has the complete table.
        case .atActivation: try stage(table.name, lines, on: &connection)
        }
        rowCount += part.count
    }

    /// Determines the numbers here of own kinds, by their names.
    private mutating func number(_ lines: [[UInt8]], on connection: inout Connection) throws {
        let sources = try lines.map { try JSONDecoder().decode(NamedKind.self, from: Data($0)) }
        let numbers: [String: Int16]
        do {
            numbers = try MoveStore.retryingLocks(on: &connection) { connection in
                try connection.transaction { try KindNames.numbers(of: sources.map(\.name), in: &$0) }
            }
        } catch let error as KindNames.Exhausted {
            throw MoveFailure("\(name) cannot be imported: \(error)")
        }
        for source in sources {
            guard let number = numbers[source.name], OwnKind.numbers.contains(number) else {
                throw MoveFailure("\(name) declares the kind \(source.name), which is a built-in kind here")
            }
            kinds[source.kind] = number
        }
    }

    /// A row of `realm.own_kind` in a stream.
    private struct NamedKind: Decodable {
        let kind: Int16
        let name: String
    }

    /// Removes the rows of an earlier write-block, which may have been rolled back: each stream has all of them.
    private mutating func removeStaged(on connection: inout Connection) throws {
        let environment = try current().environment.rawValue
        stagedCount = 0
        try connection.run("DELETE FROM realm.move_part WHERE environment_id = \(environment)")
        for table in MovedTable.others.reversed() where table.arrival == .immediate {
            try connection.run("DELETE FROM \(table.sql) WHERE environment_id = \(environment)")
        }
    }

    private mutating func stage(_ table: String, _ lines: [[UInt8]], on connection: inout Connection) throws {
        stagedCount += 1
        let text = lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
        try connection.run(
            """
            INSERT INTO realm.move_part (environment_id, number, table_name, lines)
            VALUES (\(try current().environment.rawValue), \(stagedCount), \(table), \(text))
            """)
    }

    private mutating func finish(_ end: MoveLine.End, on connection: inout Connection) throws {
        let environment = try current().environment.rawValue
        // Data lost at the source must not survive here. A stream from the beginning replaced all objects.
        let isNewer =
            isResumed
            ? try connection.run(
                """
                SELECT EXISTS (
                    SELECT FROM store.object WHERE environment_id = \(environment) AND position > \(end.position))
                """
            )[0].decode(Bool.self) : false
        guard !isNewer else {
            throw MoveFailure(
                "the copy is newer than the source: the source was restored during the copy. Roll the move back at the "
                    + "source, discard the copy here, and export again")
        }
        try connection.run(
            """
            UPDATE realm.move SET state = 'whole', generation = \(end.generation), position = \(end.position),
                changed_at = now()
            WHERE environment_id = \(environment)
            """)
    }

    /// Returns a statement that inserts rows with the new environment's id. The newer version of an object is kept.
    ///
    /// - Parameter kinds: The number here of each own kind, by its number at the source. A row with another number
    ///   violates a constraint.
    static func insert(
        _ rows: String, into table: MovedTable, of move: MoveStore.Move, kinds: [Int16: Int16] = [:]
    ) -> Statement {
        """
        INSERT INTO \(table.sql) AS o \(overriding(table))
        SELECT * FROM jsonb_populate_recordset(
            jsonb_populate_record(
                NULL::\(table.sql), jsonb_build_object('environment_id', \(move.environment.rawValue))),
            \(table.hasKindNumber ? renumbered(rows, kinds) : "\(rows)::text::jsonb"))
        \(onConflict(table))
        """
    }

    /// Returns rows with the numbers that their kinds have here.
    private static func renumbered(_ rows: String, _ kinds: [Int16: Int16]) -> Statement {
        """
        (SELECT jsonb_agg(CASE WHEN r.kind < \(OwnKind.numbers.lowerBound) THEN r.line
            ELSE r.line || jsonb_build_object('kind', k.here) END)
        FROM (SELECT line, (line->>'kind')::smallint AS kind FROM jsonb_array_elements(\(rows)::text::jsonb) line) r
        LEFT JOIN unnest(\(Array(kinds.keys)), \(Array(kinds.values))) AS k(source, here) ON k.source = r.kind)
        """
    }

    private static func overriding(_ table: MovedTable) -> Statement {
        // Audit records get new numbers, in the same order.
        table.name == "access.audit" ? "OVERRIDING USER VALUE" : "OVERRIDING SYSTEM VALUE"
    }

    private static func onConflict(_ table: MovedTable) -> Statement {
        switch table.name {
        // Each stream has all of them, and they do not change during the move.
        case MovedTable.ownKinds.name: "ON CONFLICT DO NOTHING"
        case MovedTable.objects.name:
            """
            ON CONFLICT (environment_id, realm_id, kind, id) DO UPDATE SET
                deleted = excluded.deleted, position = excluded.position, source_position = excluded.source_position,
                edit_position = excluded.edit_position, fields = excluded.fields
            WHERE o.position < excluded.position
            """
        case MovedTable.blobs.name:
            """
            ON CONFLICT (environment_id, id) DO UPDATE SET uploaded_at = excluded.uploaded_at
            WHERE o.uploaded_at < excluded.uploaded_at
            """
        default: ""
        }
    }
}

extension SecretBox {
    /// Returns a token about a move that only a holder of the transfer key can create.
    func token(_ purpose: String, of move: MoveStore.Move) throws -> String {
        Data(try seal(purpose, at: MoveLine.context(move.id, purpose))).base64EncodedString()
    }

    /// Whether a text is the token for this purpose and move.
    func isToken(_ text: String, for purpose: String, of move: MoveStore.Move) -> Bool {
        guard let data = Data(base64Encoded: text) else { return false }
        return (try? openText(Array(data), at: MoveLine.context(move.id, purpose))) == purpose
    }
}
