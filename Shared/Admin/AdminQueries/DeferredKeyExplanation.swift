import BackendProtocol
package import Essentials
import FoundationEssentials
import Model

/// An explanation of a deferred key and the possible actions, for operators.
package struct DeferredKeyExplanation {
    /// The default number of attempts after which a key is dead-lettered: about 15 minutes.
    package static let attemptsMaxDefault = 20

    package let lines: [(name: String, value: String)]

    package init(_ row: DeferredKeyStore.Row, _ object: DeferredKeyStore.Object?, now: Timestamp = .now()) {
        let subject = EventSubject(row.subject)
        var lines: [(name: String, value: String)] = [
            ("key", row.key), ("subject", Self.subject(row, subject)), ("environment", row.environment ?? "-"),
            ("reason", row.reason), ("state", Self.state(row, now)), ("attempts", Self.attempts(row)),
            ("deferred", "\(row.parkedAt), \(Self.age(of: row.parkedAt, now)) ago"),
            ("group", "\(row.group), the service that deferred it"), ("partition", "\(row.topic)/\(row.partition)"),
            ("object", Self.object(object, subject)),
        ]
        if let record = Self.record(object) { lines.append(("record", "\(record), in the back end")) }
        lines += Self.remedies(row).map { (name: "do", value: $0) }
        self.lines = lines
    }

    /// The id of the back end's record of an entry or defect, if it has one.
    private static func record(_ object: DeferredKeyStore.Object?) -> String? {
        guard let fields = object?.fields, let members = try? JSONObject(Array(fields.utf8)) else { return nil }
        return members.text(of: "backendId") ?? members.text(of: "record")
    }

    private static func subject(_ row: DeferredKeyStore.Row, _ subject: EventSubject?) -> String {
        guard let subject else { return "an unreadable message" }
        return "the \(subject.kind.rawValue) \(subject.id.text) in the realm \(subject.realm)"
    }

    private static func state(_ row: DeferredKeyStore.Row, _ now: Timestamp) -> String {
        switch row.state {
        case .dead:
            return "dead: dead-lettered, needs manual action; retried only when its object or one of its dependencies "
                + "changes, or its topic is republished"
        case .circuit:
            return "circuit: the circuit breaker of its back end is open; retried when it closes; next attempt "
                + next(row, now)
        case .waiting:
            return "waiting: retried " + next(row, now)
        }
    }

    private static func next(_ row: DeferredKeyStore.Row, _ now: Timestamp) -> String {
        let wait = row.nextAt.millisecondsSinceEpoch - now.millisecondsSinceEpoch
        return wait <= 0 ? "now" : "in \(Duration.milliseconds(wait).shortText), \(row.nextAt)"
    }

    /// The number of attempts that count towards the limit of automatic retries.
    private static func attempts(_ row: DeferredKeyStore.Row) -> String {
        row.state == .dead && row.attempts == 0 ? "not counted: a retry cannot help" : String(row.attempts)
    }

    private static func object(_ object: DeferredKeyStore.Object?, _ subject: EventSubject?) -> String {
        guard subject != nil else { return "unknown" }
        guard let object else { return "does not exist" }
        return "at position \(object.position): \(object.fields ?? "deleted")"
    }

    private static func remedies(_ row: DeferredKeyStore.Row) -> [String] {
        // The version makes the command fail if the key changes meanwhile.
        let key = "'\(row.key)' --if-version \(row.version)"
        let discard = "fieldpost deferred discard \(key) discards it; the object is unchanged"
        // The key of an unreadable message has no environment. A deleted environment leaves its id.
        guard row.environmentID != 0 else {
            return [
                "print the message, if Kafka still has it: kcat -C -t \(row.topic) -p \(row.partition) -o "
                    + "\(row.key.split(separator: "/").last ?? "") -c 1",
                discard,
            ]
        }
        let check = "fieldpost environment check \(row.environment ?? "")"
        switch row.state {
        case .waiting:
            return [
                "nothing now: it is retried, and dead-lettered after \(attemptsMaxDefault) attempts (unless set "
                    + "otherwise); if it is deferred repeatedly, fix the cause in the reason"
            ]
        case .circuit: return ["check why the back end does not respond: \(check)"]
        case .dead:
            return [
                fix(row) ?? "fix the cause in the reason (test the back end with: \(check))",
                "fieldpost deferred retry \(key) retries it", discard,
            ]
        }
    }

    /// The fix of a known reason.
    private static func fix(_ row: DeferredKeyStore.Row) -> String? {
        guard let environment = row.environment, let subject = EventSubject(row.subject) else { return nil }
        if row.reason.hasPrefix(DeferralReason.unknownPerson) {
            let email = subject.realm.email ?? "PERSON"
            return "add \(email) with their reference: fieldpost environment edit \(environment) --people FILE, then "
                + "fill their realm: fieldpost environment invite \(email) --environment \(environment)"
        }
        if let range = row.reason.firstRange(of: DeferralReason.multipleRecords) {
            let ids = row.reason[range.upperBound...].drop { $0 == ":" || $0 == " " }
            return "find the back end's records \(ids)\(ids.isEmpty ? "" : " ")whose text ends with "
                + "\(EntryMarker.marker(of: subject.id)), "
                + "and delete all but one, or remove the marker from the others' text"
        }
        return nil
    }

    private static func age(of time: Timestamp, _ now: Timestamp) -> String {
        Duration.milliseconds(now.millisecondsSinceEpoch - time.millisecondsSinceEpoch).shortText
    }
}

/// A deferred key as a line of JSON.
package enum DeferredKeyLine {
    /// Returns the row's fields with `object`: its position, and its fields or that it is deleted.
    package static func text(_ row: DeferredKeyStore.Row, _ object: DeferredKeyStore.Object?) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(row), as: UTF8.self)
        guard let object else { return text }
        // Stored fields are JSON on one line.
        let fields = object.fields.map { "\"fields\":\($0)" } ?? "\"deleted\":true"
        return "\(text.dropLast()),\"object\":{\"position\":\(object.position),\(fields)}}"
    }
}
