import BackendProtocol
import Essentials
import FoundationEssentials
import Model

/// Describes how a back end altered an accepted entry, for the owner of the entry.
enum Alteration {
    /// The message of an entry whose record cannot be found by its marker.
    static let lostMarker = "The back end cut this text off: make it shorter"

    /// Returns the log line for a record that was read back: its own message, and its differences from the sent values.
    static func line(_ sent: DesiredRecord, as record: BackendEntry, _ status: EntryStatus)
        -> SubmissionDecision.LogLine
    {
        let stored = Confirmed(sent, stored: record, status: status, in: ReportingObjects()).desired
        let isSame = sent.matches(record)
        let difference = isSame ? rounding(sent.durationSeconds, to: stored.durationSeconds) : message(sent, as: stored)
        let message = [record.message, difference].compactMap(\.self).joined(separator: "; ")
        return SubmissionDecision.LogLine(
            status: status, message: message.isEmpty ? nil : message,
            code: isSame ? (difference == nil ? nil : .rounded) : .altered)
    }

    /// Describes all differences in a stable order.
    static func message(_ sent: DesiredRecord, as stored: DesiredRecord) -> String {
        var differences: [String] = []
        if (sent.text ?? "") != (stored.text ?? "") {
            let (now, before) = excerpts(stored.text ?? "", sent.text ?? "")
            differences.append("the text \(now) instead of \(before)")
        }
        if sent.day != stored.day { differences.append("\(stored.day) instead of \(sent.day)") }
        let hours = (Hours(seconds: stored.durationSeconds), Hours(seconds: sent.durationSeconds))
        if hours.0 != hours.1 { differences.append("\(hours.0) hours instead of \(hours.1)") }
        for (name, reference) in stored.references.sorted(by: { $0.key < $1.key }) {
            guard sent.references[name] != reference else { continue }
            differences.append("\(name) \(quoted(reference)) instead of \(sent.references[name].map(quoted) ?? "none")")
        }
        return "The back end keeps " + differences.joined(separator: ", ")
    }

    /// Describes the rounding of a length; `nil` for an unchanged one.
    private static func rounding(_ sent: Int, to stored: Int) -> String? {
        if sent == stored { return nil }
        let seconds = abs(sent - stored)
        return "The back end keeps \(Hours(seconds: stored)) hours, \(seconds) second\(seconds == 1 ? "" : "s") "
            + (stored < sent ? "less" : "more") + " than entered"
    }

    // MARK: Texts

    private static let excerptLengthMax = 60
    private static let excerptLead = 20

    /// Returns excerpts of both texts, starting shortly before their first difference.
    private static func excerpts(_ left: String, _ right: String) -> (String, String) {
        let equalCount = zip(left.unicodeScalars, right.unicodeScalars).prefix { $0 == $1 }.count
        let start = max(0, equalCount - excerptLead)
        return (quoted(left, from: start), quoted(right, from: start))
    }

    /// Quotes a text and escapes its control characters, because a difference may consist of them only.
    private static func quoted(_ text: String, from start: Int = 0) -> String {
        let rest = text.unicodeScalars.dropFirst(start)
        var quoted = start > 0 ? "\"…" : "\""
        for scalar in rest.prefix(excerptLengthMax) {
            switch scalar {
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            default:
                if scalar.properties.generalCategory == .control {
                    quoted += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
                } else {
                    quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + (rest.dropFirst(excerptLengthMax).isEmpty ? "\"" : "…\"")
    }

    private static func quoted(_ text: String) -> String { quoted(text, from: 0) }
}

extension Confirmed {
    /// - Parameters:
    ///   - record: The back end's record; `nil` if it has the sent values.
    ///   - objects: The person's reporting data, if the record has other references than were sent.
    init(_ sent: DesiredRecord, stored record: BackendEntry?, status: EntryStatus, in objects: ReportingObjects) {
        var sent = sent
        sent.delivery = nil
        guard let record else {
            self.init(desired: sent, status: status)
            return
        }
        let stored = Observation(record, over: sent.fields, confirmed: sent, in: objects).desired
        self.init(desired: stored, status: status, sent: sent)
    }
}
