import BackendProtocol
package import Essentials
import FoundationEssentials
import Model

/// What is said of a key, in words for a person who sees one for the first time.
package struct ParkedExplanation {
    /// After so many attempts a key is dead, unless a service is told otherwise: by its waits in about 15 minutes.
    package static let attemptsUsual = 20

    package let lines: [(name: String, value: String)]

    package init(_ row: ParkedStore.Row, _ object: ParkedStore.Object?, now: Timestamp = .now()) {
        let subject = EventSubject(row.subject)
        lines =
            [
                ("key", row.key), ("what", Self.what(row, subject)), ("environment", row.environment ?? "-"),
                ("reason", row.reason), ("state", Self.state(row, now)), ("attempts", Self.attempts(row)),
                ("parked", "\(row.parkedAt), \(Self.age(of: row.parkedAt, now)) ago"),
                ("group", "\(row.group), the service that parked it"), ("partition", "\(row.topic)/\(row.partition)"),
                ("object", Self.object(object, subject)),
            ] + Self.remedies(row).map { ("do", $0) }
    }

    private static func what(_ row: ParkedStore.Row, _ subject: EventSubject?) -> String {
        guard let subject else { return "a message that could not be read" }
        return "the \(subject.kind.rawValue) \(subject.id.text) in the realm \(subject.realm)"
    }

    private static func state(_ row: ParkedStore.Row, _ now: Timestamp) -> String {
        switch row.state {
        case .dead:
            return "dead: it waits for a person, and is tried again only when its object changes, or something that it "
                + "depends on, or its topic is published again"
        case .circuit: return "circuit: its back end is away; it is tried again when that is back"
        case .waiting:
            let wait = row.nextAt.millisecondsSinceEpoch - now.millisecondsSinceEpoch
            return wait <= 0
                ? "waiting: due now" : "waiting: tried again in \(Duration.milliseconds(wait).shortText), \(row.nextAt)"
        }
    }

    /// Attempts that count are those after which it is tried again by itself.
    private static func attempts(_ row: ParkedStore.Row) -> String {
        row.state == .dead && row.attempts == 0 ? "not counted: no repetition can help" : String(row.attempts)
    }

    private static func object(_ object: ParkedStore.Object?, _ subject: EventSubject?) -> String {
        guard subject != nil else { return "unknown" }
        guard let object else { return "is not there" }
        return "at position \(object.position): \(object.fields ?? "deleted")"
    }

    private static func remedies(_ row: ParkedStore.Row) -> [String] {
        // With what was seen of it nothing is done to one that is parked otherwise by then.
        let key = "'\(row.key)' --seen \(row.version)"
        let discard = "fieldpost parked discard \(key) forgets it; the object stays as it is"
        // Without an environment it is a message that could not be read; one that is gone has left its number.
        guard row.environmentID != 0 else {
            return [
                "see what it is, where Kafka still has it: kcat -C -t \(row.topic) -p \(row.partition) -o "
                    + "\(row.key.split(separator: "/").last ?? "") -c 1",
                discard,
            ]
        }
        let check = "fieldpost environment check \(row.environment ?? "")"
        switch row.state {
        case .waiting:
            return [
                "nothing now: it is tried again by itself, and is dead after \(attemptsUsual) attempts; when it comes "
                    + "again and again, mend what the reason says"
            ]
        case .circuit: return ["see why the back end does not answer: \(check)"]
        case .dead:
            return [
                mend(row) ?? "mend what the reason says (\(check) tells whether its back end answers)",
                "fieldpost parked retry \(key) tries it again", discard,
            ]
        }
    }

    /// What mends a reason that is known.
    private static func mend(_ row: ParkedStore.Row) -> String? {
        guard let environment = row.environment, let subject = EventSubject(row.subject) else { return nil }
        if row.reason.hasPrefix(ParkedReason.unknownPerson) {
            let email = subject.realm.email ?? "PERSON"
            return "add \(email) with their reference: fieldpost environment edit \(environment) --people FILE, then "
                + "have their realm filled: fieldpost environment invite \(email) --environment \(environment)"
        }
        if row.reason.hasSuffix(ParkedReason.severalRecords) {
            return "in the back end look for the records whose text ends with \(EntryMarker.marker(of: subject.id)), "
                + "and delete all but one, or cut the marker out of the others' text"
        }
        return nil
    }

    private static func age(of time: Timestamp, _ now: Timestamp) -> String {
        Duration.milliseconds(now.millisecondsSinceEpoch - time.millisecondsSinceEpoch).shortText
    }
}

/// A key as a line of JSON.
package enum ParkedLine {
    /// The row's fields with `object`: its position, and its fields or that it is deleted.
    package static func text(_ row: ParkedStore.Row, _ object: ParkedStore.Object?) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(row), as: UTF8.self)
        guard let object else { return text }
        // Fields are JSON as they are stored: whatever they hold, one line.
        let fields = object.fields.map { "\"fields\":\($0)" } ?? "\"deleted\":true"
        return "\(text.dropLast()),\"object\":{\"position\":\(object.position),\(fields)}}"
    }
}
