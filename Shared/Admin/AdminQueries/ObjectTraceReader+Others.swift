import Essentials
import Model
import ObjectStore
import Postgres

/// Reads the records of notices and of commands.
extension ObjectTraceReader {
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
                    text: "submitted for \(record.map { "record \($0)" } ?? "a new record"); "
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
                    text: "a call is open until \(until), of \(record.map { "record \($0)" } ?? "a new record")"))
        }
        gaps.append("only the open attempt of a command is recorded")
    }
}
