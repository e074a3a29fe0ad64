internal import FoundationEssentials
import Model
import ObjectStore
package import Postgres
package import Secrets

/// Takes in the stream of a move (decision 0069), page by page, each in its own transaction.
///
/// What it took in stays when the stream is cut: it says where the other side goes on. Nobody works with the
/// environment before it begins (``MoveBeginning``).
package struct EnvironmentImport {
    /// The stream ended before its last line, or was refused. What came before in it is authentic, and stays.
    package struct Stopped: Error {
        /// The reason, with the part, the line and the byte.
        package let reason: String
        /// Where the other side goes on; `nil`: from the beginning.
        package let resume: MoveResume?
    }

    /// Rows of a table of the longest fields, and how they are written.
    package static let lineBytesMax = 1 << 27

    private let transfer: SecretBox
    private var reader: MoveStreamReader
    private var move: MoveStore.Move?
    private var resume: MoveResume?
    /// Whether the stream begins where an earlier one was cut.
    private var goesOn = false
    private var stagedCount: Int32 = 0
    package private(set) var rowCount = 0
    package private(set) var name = ""

    /// - Parameters:
    ///   - transfer: The key that the stream must be authenticated with.
    ///   - next: Returns the next line with its end; one without an end was cut. `nil`: no line is left.
    package init(transfer: SecretBox, next: @escaping () throws -> [UInt8]?) {
        (self.transfer, reader) = (transfer, MoveStreamReader(next: next))
    }

    /// Takes in all of it.
    ///
    /// - Returns: The receipt, without which the old place does not let the environment go.
    /// - Throws: ``Stopped``, ``MoveFailure`` or `PostgresError`.
    package mutating func run(on connection: inout Connection) throws -> String {
        do {
            return try read(on: &connection)
        } catch let failure as MoveStreamFailure {
            throw Stopped(reason: failure.reason, resume: resume)
        }
    }

    private mutating func read(on connection: inout Connection) throws -> String {
        try begin(reader.header(transfer), on: &connection)
        let move = try current()
        // What is here as a whole is not taken in again: the stream is checked, and the receipt is returned again,
        // which may have been lost.
        let isWhole = move.state == .whole
        while true {
            let (line, rows) = try reader.frame()
            switch line {
            case .header: throw MoveFailure("the stream has two beginnings")
            case .part(let part): if !isWhole { try take(part, rows, on: &connection) }
            case .held: if !isWhole { try dropHeld(on: &connection) }
            case .secret: if !isWhole { try stage("secret", [line.json], on: &connection) }
            case .end(let end):
                try reader.finish(end)
                if !isWhole { try finish(end, on: &connection) }
                return try transfer.word("whole", of: move)
            }
        }
    }

    private func current() throws -> MoveStore.Move {
        guard let move else { throw MoveFailure("this is not the stream of an environment") }
        return move
    }

    private mutating func begin(_ header: MoveLine.Header, on connection: inout Connection) throws {
        try Schema.check(on: &connection, oldest: Schema.version)
        name = header.name
        try MoveStore.lockArriving(name, on: &connection)
        if try MoveStore.find(name, on: &connection) == nil {
            try connection.transaction { transaction in
                try transaction.run([
                    // With no generation it is nobody's yet (`EnvironmentCounter.works`).
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
        guard let found = try MoveStore.find(name, on: &connection), found.id == header.move else {
            throw MoveFailure("another move of \(name) is under way here, or was; discard it before")
        }
        switch found.state {
        case .arriving: try goOn(from: header.start, of: found, on: &connection)
        // Its receipt is asked for again.
        case .whole: break
        case .begun: throw MoveFailure("\(name) has begun here")
        case .copying, .held, .left: throw MoveFailure("\(name) is leaving here")
        }
        move = found
    }

    /// A stream that goes on begins where this side stopped, and one that begins finds nothing: what was deleted at the
    /// old place since an earlier copy is in no stream.
    private mutating func goOn(
        from start: MoveResume?, of move: MoveStore.Move, on connection: inout Connection
    ) throws {
        let environment = move.environment.rawValue
        guard let start else {
            // In one transaction: nothing goes on from where an earlier copy stopped that is not here any more.
            try connection.run(
                [MovedTable.objects, .blobs].map { "DELETE FROM \($0.sql) WHERE environment_id = \(environment)" } + [
                    "UPDATE realm.move SET resume = NULL WHERE environment_id = \(environment)"
                ])
            return
        }
        let stopped = try connection.run("SELECT resume FROM realm.move WHERE environment_id = \(environment)")[0]
            .decode(String?.self)
        guard stopped.flatMap({ MoveResume(text: $0) }) == start else {
            throw MoveFailure("the stream goes on from where nothing stopped here: export without --resume")
        }
        (resume, goesOn) = (start, true)
    }

    private mutating func take(
        _ part: MoveLine.Part, _ lines: [[UInt8]], on connection: inout Connection
    ) throws {
        guard let table = MovedTable.named(part.table) else {
            throw MoveFailure("the stream has rows of \(part.table), which nothing is known of here")
        }
        switch table.arrival {
        case .asTheyCome:
            let rows = "[" + lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",") + "]"
            let move = try current()
            try connection.run([
                Self.insert(rows, into: table, of: move),
                """
                UPDATE realm.move SET resume = \(part.resume.text) WHERE environment_id = \(move.environment.rawValue)
                """,
            ])
            resume = part.resume
        // It comes anew, whole, with each stream.
        case .whenItBegins: try stage(table.name, lines, on: &connection)
        }
        rowCount += part.count
    }

    /// What came while it was held comes anew, whole: it may have been let go between.
    private mutating func dropHeld(on connection: inout Connection) throws {
        let environment = try current().environment.rawValue
        stagedCount = 0
        try connection.run("DELETE FROM realm.move_part WHERE environment_id = \(environment)")
        for table in MovedTable.others.reversed() where table.arrival == .asTheyCome {
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
        // What was lost there is not to live on here. A stream from the beginning brought all that is here.
        let isNewer =
            goesOn
            ? try connection.run(
                """
                SELECT EXISTS (
                    SELECT FROM store.object WHERE environment_id = \(environment) AND position > \(end.position))
                """
            )[0].decode(Bool.self) : false
        guard !isNewer else {
            throw MoveFailure(
                "what arrived is newer than what the old place has: it was restored while it was copied. Take the "
                    + "environment back there, discard what arrived here, and begin again")
        }
        try connection.run(
            """
            UPDATE realm.move SET state = 'whole', generation = \(end.generation), position = \(end.position),
                changed_at = now()
            WHERE environment_id = \(environment)
            """)
    }

    /// Rows of a table, which take their new environment's number. Of an object that is there the newer one stands.
    static func insert(_ rows: String, into table: MovedTable, of move: MoveStore.Move) -> Statement {
        """
        INSERT INTO \(table.sql) AS o \(overriding(table))
        SELECT * FROM jsonb_populate_recordset(
            jsonb_populate_record(
                NULL::\(table.sql), jsonb_build_object('environment_id', \(move.environment.rawValue))),
            \(rows)::text::jsonb)
        \(onConflict(table))
        """
    }

    private static func overriding(_ table: MovedTable) -> Statement {
        // Records of the audit log get numbers of here, in their order.
        table.name == "access.audit" ? "OVERRIDING USER VALUE" : "OVERRIDING SYSTEM VALUE"
    }

    private static func onConflict(_ table: MovedTable) -> Statement {
        switch table.name {
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
    /// A word about a move that only who has the transfer key can write.
    func word(_ word: String, of move: MoveStore.Move) throws -> String {
        Data(try seal(word, at: MoveLine.place(move.id, word))).base64EncodedString()
    }

    func hasWritten(_ word: String, of move: MoveStore.Move, as text: String) -> Bool {
        guard let data = Data(base64Encoded: text) else { return false }
        return (try? openText(Array(data), at: MoveLine.place(move.id, word))) == word
    }
}
