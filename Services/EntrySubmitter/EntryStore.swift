import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import Telemetry

/// The SQL of `submission.ledger`, and of what the submitter writes into realms.
enum EntryStore {
    /// The row of an entry, whose realm it belongs to, and what it says.
    struct StoredLedger {
        /// `nil`: nobody's any more. Ids are the devices' own choice, so an entry of another realm may have the same.
        let realm: Int32?
        let version: Int64
        let ledger: Result<Ledger, Undecodable>
    }

    /// Rows: as `ledgers` reads them.
    static func loadLedgers(_ entries: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT l.entry_id, l.realm_id, l.version, l.phase, l.operation, l.edit_position,
            extract(epoch FROM l.lease_until - now())::float8, l.backend_id, l.wanted, l.confirmed, l.logged_at
        FROM (SELECT DISTINCT id FROM unnest(\(entries)) AS e(id)) e CROSS JOIN LATERAL (
            SELECT * FROM submission.ledger WHERE environment_id = \(environment.rawValue) AND entry_id = e.id
            OFFSET 0
        ) l
        """
    }

    /// The rows of `loadLedgers` by entry. One that does not decode is not as if there were none: something was tried.
    ///
    /// - Parameter sent: Attempts whose answers came.
    static func ledgers(_ rows: Rows, sent: [UUID: SentAttempt]) throws(PostgresError) -> [UUID: StoredLedger] {
        var ledgers: [UUID: StoredLedger] = [:]
        let decoder = JSONDecoder()
        for row in rows {
            var columns = row.columns
            let (entry, realm) = (try columns.next(UUID.self), try columns.next(Int32?.self))
            let version = try columns.next(Int64.self)
            let attempt = sent[entry].flatMap { $0.realm == realm ? $0 : nil }
            ledgers[entry] = StoredLedger(
                realm: realm, version: version, ledger: try ledger(&columns, version, of: entry, attempt, decoder))
            try columns.end()
        }
        return ledgers
    }

    private static func ledger(
        _ columns: inout Columns, _ version: Int64, of entry: UUID, _ sent: SentAttempt?, _ decoder: JSONDecoder
    ) throws(PostgresError) -> Result<Ledger, Undecodable> {
        var ledger = Ledger()
        ledger.version = version
        let (phase, operation) = (try columns.next(String.self), try columns.next(String.self))
        ledger.editPosition = try columns.next()
        ledger.leaseRemaining = .milliseconds(Int64(try columns.next(Double.self) * 1_000))
        ledger.backendID = try columns.next()
        let (wanted, confirmed) = (try columns.next(JSONBytes?.self), try columns.next(JSONBytes?.self))
        ledger.loggedAt = try columns.next()
        var name: String { "the submission ledger of TimeEntry \(entry.text)" }
        guard let phase = Ledger.Phase(rawValue: phase), let operation = Ledger.Operation(rawValue: operation)
        else {
            return .failure(
                Undecodable(description: "\(name) has the phase \(phase), the operation \(operation)"))
        }
        ledger.phase = phase
        ledger.operation = operation
        do throws(Undecodable) {
            if let sent, sent.version == version, sent.editPosition == ledger.editPosition, wanted != nil {
                ledger.wanted = sent.encoded.wanted
            } else {
                ledger.wanted = try wanted?.decoded(as: Wanted.self, by: decoder, name: "\(name), wanted,")
            }
            ledger.confirmed = try confirmed?.decoded(
                as: Confirmed.self, by: decoder, name: "\(name), confirmed,")
            return .success(ledger)
        } catch {
            return .failure(error)
        }
    }

    /// Other entries of the same realm that have a record of the back end; it looks at all entries of the realm. Rows:
    /// whether the entry is deleted, or to be deleted.
    static func others(with record: String, than entry: ObjectKey, in environment: EnvironmentID) -> Statement {
        """
        SELECT o.deleted OR coalesce(o.fields::json->>'deleteRequested' = 'true', false)
        FROM store.object o LEFT JOIN LATERAL (
            SELECT backend_id FROM submission.ledger
            WHERE environment_id = \(environment.rawValue) AND entry_id = o.id AND realm_id = o.realm_id
            OFFSET 0
        ) l ON true
        WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(entry.realm)
            AND o.kind = \(Kind.timeEntry) AND o.id <> \(entry.id)
            AND coalesce(l.backend_id, o.fields::json->>'backendId') = \(record)
        """
    }

    /// The newest line of the logs of some entries; it looks at all lines of their realms. Rows: as `newestLines` reads
    /// them.
    static func loadNewestLines(of entries: [ObjectKey], in environment: EnvironmentID) -> Statement {
        """
        SELECT DISTINCT ON (o.realm_id, o.entry) o.realm_id, o.entry, o.fields::json->>'status',
            o.fields::json->>'timestamp'
        FROM (SELECT DISTINCT id FROM unnest(\(entries.map(\.realm))) AS r(id)) r CROSS JOIN LATERAL (
            SELECT realm_id, (fields::json->>'entry')::uuid AS entry, fields, position FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = \(Kind.timeEntryStatus) AND NOT deleted
                AND lower(fields::json->>'entry') = ANY (\(entries.map(\.id.text)))
            OFFSET 0
        ) o
        ORDER BY o.realm_id, o.entry, (o.fields::json->>'timestamp')::timestamptz DESC NULLS LAST,
            o.position DESC
        """
    }

    /// By entry. A status that nobody knows is none, and a line without its time is none.
    static func newestLines(
        _ rows: Rows
    ) throws(PostgresError) -> [ObjectKey: (status: EntryStatus?, time: Timestamp)] {
        var lines: [ObjectKey: (status: EntryStatus?, time: Timestamp)] = [:]
        for (realm, entry, status, time) in try rows.decode(Int32.self, UUID.self, String?.self, String?.self) {
            guard let time = time.flatMap({ Timestamp($0) }) else { continue }
            let key = ObjectKey(realm: realm, kind: .timeEntry, id: entry)
            lines[key] = (status.flatMap { EntryStatus(rawValue: $0) }, time)
        }
        return lines
    }

    /// Whether the database has lost what was sent. One that was sent belongs to a day that was known then: a year
    /// ahead is more than anybody reports. However late a device comes back with such an entry, its day tells.
    /// Rows: as `restore` reads them.
    static let loadRestore: Statement = """
        SELECT to_char(restored_at + interval '366 days', 'YYYY-MM-DD'),
            extract(epoch FROM now() - restored_at)::float8
        FROM realm.lineage WHERE restored_at IS NOT NULL
        """

    /// - Returns: `nil` when nothing was lost.
    static func restore(_ rows: Rows) throws(PostgresError) -> Restore? {
        guard let (text, seconds) = try rows.first?.decode(String.self, Double.self), let day = Day(text) else {
            return nil
        }
        return Restore(throughDay: day, since: .milliseconds(Int64(seconds * 1_000)))
    }

    /// How fast a back end may be called, from the rows of `BackendConfiguration.callRates`.
    static func rates(_ rows: Rows) throws(PostgresError) -> CallRates {
        guard let (all, person) = try rows.first?.decode(Int32?.self, Int32?.self) else { return CallRates() }
        return CallRates(perSecond: all.map { Double($0) }, perPersonAndSecond: person.map { Double($0) })
    }

    struct LedgerWrite {
        let entry: UUID
        let realm: Int32
        let ledger: Ledger
        /// How what it wants, or is known to hold, is written, where that was made already.
        let encoded: EncodedWanted?
        let lease: Duration
        /// What the history of attempts gets.
        let record: AttemptRecord?
        let decision: Int

        func wanted(by encoder: JSONEncoder) throws -> JSONBytes? {
            guard let wanted = ledger.wanted else { return nil }
            if let encoded, encoded.wanted == wanted { return encoded.json }
            return JSONBytes([UInt8](try encoder.encode(wanted)))
        }

        func confirmed(by encoder: JSONEncoder) throws -> JSONBytes? {
            guard let confirmed = ledger.confirmed else { return nil }
            if let encoded, encoded.wanted == confirmed.wanted, confirmed.sent == nil {
                return encoded.confirmed(confirmed.status)
            }
            return JSONBytes([UInt8](try encoder.encode(confirmed)))
        }
    }

    /// A decision stands only while the ledger is at the version it was made from; 0 means that there is no row.
    static func expect(_ versions: [(entry: UUID, version: Int64, decision: Int)], in environment: EnvironmentID)
        -> Statement
    {
        """
        SELECT realm.miss(array_agg(g.decision))
        FROM unnest(\(versions.map(\.entry)), \(versions.map(\.version)), \(versions.map { Int32($0.decision) }))
            AS g(entry_id, version, decision)
        LEFT JOIN LATERAL (
            SELECT l.version FROM submission.ledger l
            WHERE l.environment_id = \(environment.rawValue) AND l.entry_id = g.entry_id
            OFFSET 0
        ) l ON true
        WHERE coalesce(l.version, 0) <> g.version
        """
    }

    static func save(_ writes: [LedgerWrite], in environment: EnvironmentID) throws -> Statement {
        var wanted = BinaryArray(of: JSONBytes.self)
        var confirmed = BinaryArray(of: JSONBytes.self)
        var backendIDs = BinaryArray(of: String.self)
        var attempts = AttemptColumns()
        let encoder = JSONEncoder()
        for write in writes {
            attempts.append(write.record)
            wanted.append(try write.wanted(by: encoder))
            confirmed.append(try write.confirmed(by: encoder))
            backendIDs.append(write.ledger.backendID)
        }
        return """
            WITH i AS MATERIALIZED (
                SELECT * FROM unnest(\(writes.map(\.entry)), \(writes.map(\.realm)), \(writes.map(\.ledger.version)),
                    \(writes.map(\.ledger.phase.rawValue)), \(writes.map(\.ledger.operation.rawValue)),
                    \(writes.map(\.ledger.editPosition)), \(writes.map { $0.lease.inSeconds }),
                    \(backendIDs), \(wanted), \(confirmed), \(writes.map(\.ledger.loggedAt)),
                    \(attempts.heard), \(attempts.details), \(attempts.began), \(attempts.traces),
                    \(writes.map { Int32($0.decision) }))
                    AS i(entry_id, realm_id, version, phase, operation, edit_position, lease, backend_id, wanted,
                        confirmed, logged_at, heard, detail, began, traceparent, decision)
                WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
            ), a AS (
                INSERT INTO submission.attempt (environment_id, entry_id, version, realm_id, edit_position, heard,
                    detail, began, backend_id, traceparent)
                SELECT \(environment.rawValue), entry_id, version, realm_id, edit_position, heard, detail, began,
                    backend_id, traceparent
                FROM i WHERE heard IS NOT NULL OR began IS NOT NULL
                ON CONFLICT DO NOTHING
            )
            INSERT INTO submission.ledger (environment_id, entry_id, realm_id, version, phase, operation, edit_position,
                lease_until, backend_id, wanted, confirmed, logged_at)
            SELECT \(environment.rawValue), i.entry_id, i.realm_id, i.version, i.phase, i.operation, i.edit_position,
                now() + make_interval(secs => i.lease), i.backend_id, i.wanted, i.confirmed, i.logged_at
            FROM i
            ON CONFLICT (environment_id, entry_id) DO UPDATE SET
                version = excluded.version, phase = excluded.phase, operation = excluded.operation,
                edit_position = excluded.edit_position, lease_until = excluded.lease_until,
                backend_id = excluded.backend_id, wanted = excluded.wanted, confirmed = excluded.confirmed,
                logged_at = excluded.logged_at
            """
    }

    static func forget(_ entries: [(entry: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM submission.ledger WHERE ctid = ANY (ARRAY(
            SELECT l.ctid
            FROM unnest(\(entries.map(\.entry)), \(entries.map { Int32($0.decision) })) AS i(entry_id, decision)
            CROSS JOIN LATERAL (
                SELECT l.ctid FROM submission.ledger l
                WHERE l.environment_id = \(environment.rawValue) AND l.entry_id = i.entry_id
                OFFSET 0
            ) l
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])))
        """
    }
}

extension EntryPatch {
    /// The patch as JSON: only what is set.
    func json() throws -> CanonicalJSON {
        var members: [String] = []
        let encoder = JSONEncoder()
        func add(_ name: String, _ value: some Encodable) throws {
            members.append("\"\(name)\":" + String(decoding: try encoder.encode(value), as: UTF8.self))
        }
        if let status { members.append("\"status\":\"\(status.rawValue)\"") }
        if let backendID { try add("backendId", backendID) }
        if let deleteRequested { members.append("\"deleteRequested\":\(deleteRequested)") }
        if let submitRequested { members.append("\"submitRequested\":\(submitRequested)") }
        if let statusAt { members.append("\"statusAt\":\"\(statusAt)\"") }
        if let restored {
            try add("text", restored.text)
            try add("reportingTemplate", restored.reportingTemplate)
            try add("reporting", restored.reporting)
            try add("timeType", restored.timeType)
            try add("entryDate", restored.entryDate)
            try add("startTime", restored.startTime)
            try add("endTime", restored.endTime)
            try add("durationSeconds", restored.durationSeconds)
        }
        return try CanonicalJSON("{" + members.joined(separator: ",") + "}")
    }
}
