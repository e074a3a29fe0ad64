import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres
import Telemetry

/// SQL statements for `submission.ledger`, and for the submitter's reads in realms.
enum EntryStore {
    /// A ledger row with the realm of its entry.
    struct StoredLedger {
        /// `nil` if the realm was deleted. Devices choose ids, so an entry of another realm may have the same id.
        let realm: Int32?
        let version: Int64
        let ledger: Result<Ledger, StoredJSONError>
    }

    /// Selects ledger rows. Rows: as decoded by `ledgers`.
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

    /// Decodes the rows of `loadLedgers` by entry. An undecodable row is a failure, not an absent row, because an
    /// attempt was made.
    ///
    /// - Parameter sent: Attempts whose results are being handled.
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
    ) throws(PostgresError) -> Result<Ledger, StoredJSONError> {
        var ledger = Ledger()
        ledger.version = version
        let (phase, operation) = (try columns.next(String.self), try columns.next(String.self))
        ledger.editPosition = try columns.next()
        ledger.leaseRemaining = .milliseconds(Int64(try columns.next(Double.self) * 1_000))
        ledger.backendID = try columns.next()
        let (desired, confirmed) = (try columns.next(JSONBytes?.self), try columns.next(JSONBytes?.self))
        ledger.loggedAt = try columns.next()
        var name: String { "the submission ledger of TimeEntry \(entry.text)" }
        guard let phase = Ledger.Phase(rawValue: phase), let operation = Ledger.Operation(rawValue: operation)
        else {
            return .failure(
                StoredJSONError(description: "\(name) has the phase \(phase), the operation \(operation)"))
        }
        ledger.phase = phase
        ledger.operation = operation
        do throws(StoredJSONError) {
            if let sent, sent.version == version, sent.editPosition == ledger.editPosition, desired != nil {
                ledger.desired = sent.encoded.desired
            } else {
                ledger.desired = try desired?.decoded(as: DesiredRecord.self, by: decoder, name: "\(name), desired,")
            }
            ledger.confirmed = try confirmed?.decoded(as: Confirmed.self, by: decoder, name: "\(name), confirmed,")
            return .success(ledger)
        } catch {
            return .failure(error)
        }
    }

    /// Selects other entries of the same realm with a record of the back end; scans all entries of the realm. Rows:
    /// whether the entry is deleted or to be deleted.
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

    /// Selects the newest log line of some entries; scans all lines of their realms. Rows: as decoded by `newestLines`.
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

    /// Decodes the newest lines by entry. An unknown status is `nil`; a line without a time is omitted.
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

    /// Selects the time of a restore, after which sent entries may lack a ledger. Entries of days up to a year ahead
    /// may have been sent before: more than people report, however late their device sends such an entry. Rows: as
    /// decoded by `restore`.
    static let loadRestore: Statement = """
        SELECT to_char(restored_at + interval '366 days', 'YYYY-MM-DD'),
            extract(epoch FROM now() - restored_at)::float8
        FROM realm.lineage WHERE restored_at IS NOT NULL
        """

    /// - Returns: `nil` if the database was not restored.
    static func restore(_ rows: Rows) throws(PostgresError) -> Restore? {
        guard let (text, seconds) = try rows.first?.decode(String.self, Double.self), let day = Day(text) else {
            return nil
        }
        return Restore(throughDay: day, since: .milliseconds(Int64(seconds * 1_000)))
    }

    /// Decodes the rate limits of a back end from the rows of `BackendConfiguration.rateLimits`.
    static func rates(_ rows: Rows) throws(PostgresError) -> CallRateLimits {
        guard let (all, person) = try rows.first?.decode(Int32?.self, Int32?.self) else { return CallRateLimits() }
        return CallRateLimits(perSecond: all.map { Double($0) }, perPersonAndSecond: person.map { Double($0) })
    }

    struct LedgerWrite {
        let entry: UUID
        let realm: Int32
        let ledger: Ledger
        /// The encoded desired or confirmed record, if available.
        let encoded: EncodedRecord?
        let lease: Duration
        /// The row for the history of attempts.
        let record: AttemptRecord?
        let decision: Int

        func desired(by encoder: JSONEncoder) throws -> JSONBytes? {
            guard let desired = ledger.desired else { return nil }
            if let encoded, encoded.desired == desired { return encoded.json }
            return JSONBytes([UInt8](try encoder.encode(desired)))
        }

        func confirmed(by encoder: JSONEncoder) throws -> JSONBytes? {
            guard let confirmed = ledger.confirmed else { return nil }
            if let encoded, encoded.desired == confirmed.desired, confirmed.sent == nil {
                return encoded.confirmed(confirmed.status)
            }
            return JSONBytes([UInt8](try encoder.encode(confirmed)))
        }
    }

    /// Makes decisions conditional on the loaded version of the ledger; 0 means that there is no row.
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
        var desired = BinaryArray(of: JSONBytes.self)
        var confirmed = BinaryArray(of: JSONBytes.self)
        var backendIDs = BinaryArray(of: String.self)
        var attempts = AttemptColumns()
        let encoder = JSONEncoder()
        for write in writes {
            attempts.append(write.record)
            desired.append(try write.desired(by: encoder))
            confirmed.append(try write.confirmed(by: encoder))
            backendIDs.append(write.ledger.backendID)
        }
        return """
            WITH i AS MATERIALIZED (
                SELECT * FROM unnest(\(writes.map(\.entry)), \(writes.map(\.realm)), \(writes.map(\.ledger.version)),
                    \(writes.map(\.ledger.phase.rawValue)), \(writes.map(\.ledger.operation.rawValue)),
                    \(writes.map(\.ledger.editPosition)), \(writes.map { $0.lease.inSeconds }),
                    \(backendIDs), \(desired), \(confirmed), \(writes.map(\.ledger.loggedAt)),
                    \(attempts.results), \(attempts.details), \(attempts.operations), \(attempts.traces),
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

    static func delete(_ entries: [(entry: UUID, decision: Int)], in environment: EnvironmentID) -> Statement {
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
    /// Returns the patch as JSON with its non-nil members.
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
