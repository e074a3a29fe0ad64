import BackendProtocol
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What is kept of entries.
extension StoryReader {
    mutating func readStatusLines(on connection: inout Connection) throws {
        // A line has its writer's clock; its pointer has the database's, as all else has that was written with it, so
        // that neither is told before the other. A pointer that is younger by far was made anew.
        let rows = try connection.run(
            """
            SELECT line.position,
                CASE WHEN written.changed_at BETWEEN told.at - interval '1 minute' AND told.at + interval '1 minute'
                    THEN written.changed_at ELSE told.at END,
                line.fields::json->>'status', line.fields::json->>'message'
            FROM store.object line
            CROSS JOIN LATERAL (SELECT (line.fields::json->>'timestamp')::timestamptz AS at) told
            LEFT JOIN store.change written
                ON written.environment_id = line.environment_id AND written.position = line.position
            WHERE line.environment_id = \(object.environment) AND line.realm_id = \(object.realm)
                AND line.kind = \(Kind.timeEntryStatus) AND NOT line.deleted
                AND lower(line.fields::json->>'entry') = \(object.id.text)
            ORDER BY line.position LIMIT \(Self.hopsMax)
            """
        ).decode(Int64.self, PostgresTime?.self, String.self, String?.self)
        for (position, time, status, message) in rows {
            hops.append(
                Story.Hop(
                    at: time.map { Timestamp($0) }, service: "status log", event: "status",
                    text: status + (message.map { ": \($0)" } ?? ""), position: position))
        }
    }

    mutating func readAttempts(on connection: inout Connection) throws {
        let found = try connection.runWhereThere(
            """
            SELECT happened_at, version, edit_position, heard, detail, began, backend_id, traceparent
            FROM submission.attempt
            WHERE environment_id = \(object.environment) AND entry_id = \(object.id) AND realm_id = \(object.realm)
            ORDER BY happened_at, version LIMIT \(Self.hopsMax)
            """)
        guard let rows = found else {
            gaps.append("attempts are kept from schema 027 on, which this database has not")
            return
        }
        var attempts = AttemptStory(marker: EntryMarker.marker(of: object.id))
        for (at, version, edit, heard, detail, began, record, traceparent) in try rows.decode(
            PostgresTime.self, Int64.self, Int64.self, String?.self, String?.self, String?.self, String?.self,
            String?.self)
        {
            let position = changes.first { $0.time == at && writers[$0.position] == nil }?.position
            if let position { writers[position] = "entry-submitter" }
            hops += attempts.hops(
                AttemptStory.Row(
                    at: Timestamp(at), version: version, editPosition: edit, heard: heard, detail: detail, began: began,
                    record: record, traceparent: traceparent), position: position)
        }
        if rows.count == 0, writers.values.contains("device") {
            gaps.append("no attempt to submit it is known: none was made, or it was removed as old, or made before 027")
        }
        if attempts.isOpen { gaps.append("the last call's answer is not known: it may be under way") }
    }

    mutating func readLedger(on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT version, phase, operation, edit_position, backend_id FROM submission.ledger
            WHERE environment_id = \(object.environment) AND entry_id = \(object.id) AND realm_id = \(object.realm)
            """
        ).decode(Int64.self, String.self, String.self, Int64.self, String?.self)
        for (version, phase, operation, edit, record) in rows {
            hops.append(
                Story.Hop(
                    at: nil, service: "ledger", event: phase,
                    text: "the ledger is at version \(version), \(phase) (\(operation)), for the edit at \(edit)"
                        + (record.map { "; record \($0)" } ?? "; no record"), position: edit))
        }
    }
}

/// Tells rows of `submission.attempt` one after the other.
struct AttemptStory {
    struct Row {
        let at: Timestamp
        let version: Int64
        let editPosition: Int64
        let heard: String?
        let detail: String?
        let began: String?
        let record: String?
        let traceparent: String?
    }

    let marker: String
    /// Writes that were tried so far.
    private(set) var count = 0
    /// A call was begun of which nothing was heard.
    private(set) var isOpen = false
    private var lastCall = ""

    init(marker: String) { self.marker = marker }

    mutating func hops(_ row: Row, position: Int64?) -> [Story.Hop] {
        var hops: [Story.Hop] = []
        func hop(_ service: String, _ event: String, _ text: String) -> Story.Hop {
            Story.Hop(
                at: row.at, service: service, event: event, text: text, position: position,
                attempt: count == 0 ? nil : count, traceparent: row.traceparent)
        }
        if let heard = row.heard {
            hops.append(hop("back end", Self.event(heard), Self.text(heard, of: lastCall, row)))
        } else if isOpen {
            hops.append(
                hop(
                    "entry-submitter", "unanswered",
                    "nothing was recorded of the call (\(lastCall)): who made it ended before; its outcome is unknown"))
        }
        isOpen = row.began != nil
        guard let began = row.began else { return hops }
        lastCall = began
        if began == "find" {
            hops.append(
                hop("entry-submitter", "lookedUp", "the back end is asked for a record with the marker \(marker)"))
        } else {
            count += 1
            hops.append(
                hop(
                    "entry-submitter", "called",
                    "\(began) for the edit at \(row.editPosition), marker \(marker), ledger version \(row.version)"))
        }
        return hops
    }

    private static func event(_ heard: String) -> String {
        switch heard {
        case "record": "found"
        case "absent": "notFound"
        default: heard
        }
    }

    private static func text(_ heard: String, of call: String, _ row: Row) -> String {
        let detail = row.detail.map { ": \($0)" } ?? ""
        return switch heard {
        case "record": "record \(row.record ?? "?") was read back\(detail)"
        case "absent": "the back end has no such record"
        case "ambiguous": "it cannot be told which record it is\(detail)"
        case "refused": "the back end refuses the \(call)\(detail)"
        case "notProcessed": "the back end did nothing\(detail)"
        case "unknown": "whether the \(call) was done is unknown\(detail)"
        case "notMade": "the \(call) was not made after all"
        default: "\(heard)\(detail)"
        }
    }
}
