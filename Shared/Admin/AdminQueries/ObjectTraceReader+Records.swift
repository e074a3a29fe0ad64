import BackendProtocol
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Reads the records of entries, notices and commands.
extension ObjectTraceReader {
    mutating func readStatusLines(on connection: inout Connection) throws {
        // A line has the time of its writer's clock; its pointer has the database's, like all records written with it,
        // so that their order is correct. A much younger pointer was recreated.
        let rows = try connection.run(
            """
            SELECT line.position,
                CASE WHEN written.changed_at BETWEEN logged.at - interval '1 minute' AND logged.at + interval '1 minute'
                    THEN written.changed_at ELSE logged.at END,
                line.fields::json->>'status', line.fields::json->>'message'
            FROM store.object line
            CROSS JOIN LATERAL (SELECT (line.fields::json->>'timestamp')::timestamptz AS at) logged
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
                ObjectTrace.Hop(
                    at: time.map { Timestamp($0) }, service: "status log", event: "status",
                    text: status + (message.map { ": \($0)" } ?? ""), position: position))
        }
    }

    mutating func readAttempts(on connection: inout Connection) throws {
        let recordedAttempts = try connection.runIfTableExists(
            """
            SELECT happened_at, version, edit_position, heard, detail, began, backend_id, traceparent
            FROM submission.attempt
            WHERE environment_id = \(object.environment) AND entry_id = \(object.id) AND realm_id = \(object.realm)
            ORDER BY happened_at, version LIMIT \(Self.hopsMax)
            """)
        guard let rows = recordedAttempts else {
            gaps.append("attempts are recorded from schema 027 on")
            return
        }
        var attempts = AttemptTrace(marker: EntryMarker.marker(of: object.id))
        for (at, version, edit, heard, detail, began, record, traceparent) in try rows.decode(
            PostgresTime.self, Int64.self, Int64.self, String?.self, String?.self, String?.self, String?.self,
            String?.self)
        {
            let position = changes.first { $0.time == at && writers[$0.position] == nil }?.position
            if let position { writers[position] = "entry-submitter" }
            hops += attempts.hops(
                AttemptTrace.Row(
                    at: Timestamp(at), version: version, editPosition: edit, response: heard, detail: detail,
                    began: began, record: record, traceparent: traceparent), position: position)
        }
        if rows.count == 0, writers.values.contains("device") {
            gaps.append(
                "no attempt to submit it is recorded: none was made, it expired, or it was made before schema 027")
        }
        if attempts.isOpen { gaps.append("the response of the last call is not recorded: it may be in flight") }
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
                ObjectTrace.Hop(
                    at: nil, service: "ledger", event: phase,
                    text: "the ledger is at version \(version), \(phase) (\(operation)), for the edit at \(edit)"
                        + (record.map { "; record \($0)" } ?? "; no record"), position: edit))
        }
    }

    mutating func readShipments(on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT way, state, due_at, next_at, attempts, last_error, ended_at FROM delivery.shipment
            WHERE environment_id = \(object.environment) AND realm_id = \(object.realm) AND notice_id = \(object.id)
            ORDER BY due_at, target_id LIMIT \(Self.hopsMax)
            """
        ).decode(
            String.self, String.self, Timestamp.self, Timestamp.self, Int32.self, String?.self, Timestamp?.self)
        for (way, state, due, next, attempts, problem, ended) in rows {
            let error = problem.map { "; the last attempt: \($0)" } ?? ""
            hops.append(
                ObjectTrace.Hop(
                    at: ended ?? due, service: "notice-deliverer", event: state,
                    text: "by \(way): \(state) after \(attempts) attempts"
                        + (ended == nil ? ", next attempt at \(next)" : "") + error,
                    attempt: Int(attempts)))
        }
        if !rows.isEmpty { gaps.append("only the last attempt of a delivery and the number of attempts are recorded") }
    }

    mutating func readCommand(on connection: inout Connection) throws {
        let commands = try connection.run(
            """
            SELECT handed_in_at, is_waiting, edit_position, record FROM defect.command
            WHERE environment_id = \(object.environment) AND realm_id = \(object.realm) AND command_id = \(object.id)
            """
        ).decode(Timestamp.self, Bool.self, Int64.self, String?.self)
        for (at, isWaiting, position, record) in commands {
            hops.append(
                ObjectTrace.Hop(
                    at: at, service: "defect-submitter", event: "handedIn",
                    text: "submitted for \(record.map { "record \($0)" } ?? "no existing record"); "
                        + (isWaiting ? "pending" : "completed"), position: position))
        }
        let attempts = try connection.run(
            """
            SELECT lease_until, record FROM defect.attempt
            WHERE environment_id = \(object.environment) AND realm_id = \(object.realm) AND command_id = \(object.id)
            """
        ).decode(Timestamp.self, String?.self)
        for (until, record) in attempts {
            hops.append(
                ObjectTrace.Hop(
                    at: nil, service: "defect-submitter", event: "called",
                    text: "a call is open until \(until), of \(record.map { "record \($0)" } ?? "no existing record")"))
        }
        gaps.append("only the open attempt of a command is recorded")
    }
}

/// Converts rows of `submission.attempt` to events, in order.
struct AttemptTrace {
    struct Row {
        let at: Timestamp
        let version: Int64
        let editPosition: Int64
        let response: String?
        let detail: String?
        let began: String?
        let record: String?
        let traceparent: String?
    }

    let marker: String
    /// Number of attempted writes.
    private(set) var count = 0
    /// Whether the last call has no recorded response.
    private(set) var isOpen = false
    private var lastCall = ""

    init(marker: String) { self.marker = marker }

    mutating func hops(_ row: Row, position: Int64?) -> [ObjectTrace.Hop] {
        var hops: [ObjectTrace.Hop] = []
        func hop(_ service: String, _ event: String, _ text: String) -> ObjectTrace.Hop {
            ObjectTrace.Hop(
                at: row.at, service: service, event: event, text: text, position: position,
                attempt: count == 0 ? nil : count, traceparent: row.traceparent)
        }
        if let response = row.response {
            hops.append(hop("back end", Self.event(response), Self.text(response, of: lastCall, row)))
        } else if isOpen {
            hops.append(
                hop(
                    "entry-submitter", "unanswered",
                    "no response to the call (\(lastCall)) is recorded: its worker stopped; the outcome is unknown"))
        }
        isOpen = row.began != nil
        guard let began = row.began else { return hops }
        lastCall = began
        if began == "find" {
            hops.append(
                hop("entry-submitter", "lookedUp", "the back end is queried for a record with the marker \(marker)"))
        } else {
            count += 1
            hops.append(
                hop(
                    "entry-submitter", "called",
                    "\(began) for the edit at \(row.editPosition), marker \(marker), ledger version \(row.version)"))
        }
        return hops
    }

    private static func event(_ response: String) -> String {
        switch response {
        case "record": "found"
        case "absent": "notFound"
        default: response
        }
    }

    private static func text(_ response: String, of call: String, _ row: Row) -> String {
        let detail = row.detail.map { ": \($0)" } ?? ""
        return switch response {
        case "record": "record \(row.record ?? "?") was read back\(detail)"
        case "absent": "the back end has no such record"
        case "ambiguous": "the record is ambiguous\(detail)"
        case "refused": "the back end rejected the \(call)\(detail)"
        case "notProcessed": "the back end did not process it\(detail)"
        case "unknown": "the outcome of the \(call) is unknown\(detail)"
        case "notMade": "the \(call) was not made"
        default: "\(response)\(detail)"
        }
    }
}
