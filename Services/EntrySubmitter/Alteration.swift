import BackendProtocol
import Essentials
import FoundationEssentials
import Model

/// Describes how a back end altered an accepted entry, for the person whose entry it is.
enum Alteration {
    /// Of an entry whose record cannot be found again by its marker.
    static let lostMarker = "The back end cut this text off: make it shorter"

    /// The line about a record that was read back: its own message, and how it differs from what was sent.
    static func line(_ sent: Wanted, as record: BackendEntry, _ status: EntryStatus) -> SubmissionDecision.LogLine {
        let kept = Confirmed(sent, kept: record, status: status, in: ReportingObjects()).wanted
        let isSame = sent.matches(record)
        let difference = isSame ? rounding(sent.durationSeconds, to: kept.durationSeconds) : message(sent, as: kept)
        let message = [record.message, difference].compactMap(\.self).joined(separator: "; ")
        return SubmissionDecision.LogLine(
            status: status, message: message.isEmpty ? nil : message,
            code: isSame ? (difference == nil ? nil : .rounded) : .altered)
    }

    /// Every difference, in a stable order.
    static func message(_ sent: Wanted, as kept: Wanted) -> String {
        var differences: [String] = []
        if (sent.text ?? "") != (kept.text ?? "") {
            let (now, before) = excerpts(kept.text ?? "", sent.text ?? "")
            differences.append("the text \(now) instead of \(before)")
        }
        if sent.day != kept.day { differences.append("\(kept.day) instead of \(sent.day)") }
        let hours = (Hours(seconds: kept.durationSeconds), Hours(seconds: sent.durationSeconds))
        if hours.0 != hours.1 { differences.append("\(hours.0) hours instead of \(hours.1)") }
        for (name, reference) in kept.references.sorted(by: { $0.key < $1.key }) {
            guard sent.references[name] != reference else { continue }
            differences.append("\(name) \(quoted(reference)) instead of \(sent.references[name].map(quoted) ?? "none")")
        }
        return "The back end keeps " + differences.joined(separator: ", ")
    }

    /// Describes by how much the back end rounded a length; `nil` for one that it keeps.
    private static func rounding(_ sent: Int, to kept: Int) -> String? {
        if sent == kept { return nil }
        let seconds = abs(sent - kept)
        return "The back end keeps \(Hours(seconds: kept)) hours, \(seconds) second\(seconds == 1 ? "" : "s") "
            + (kept < sent ? "less" : "more") + " than entered"
    }

    // MARK: Texts

    private static let excerptLengthMax = 60
    private static let excerptLead = 20

    /// Both texts from shortly before their first difference on.
    private static func excerpts(_ left: String, _ right: String) -> (String, String) {
        let equalCount = zip(left.unicodeScalars, right.unicodeScalars).prefix { $0 == $1 }.count
        let start = max(0, equalCount - excerptLead)
        return (quoted(left, from: start), quoted(right, from: start))
    }

    /// A text in quotes, with its control characters spelled out, since a difference may be in them alone.
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
    ///   - record: The back end's record; `nil`: what was sent.
    ///   - objects: What the person can report on, where the record is about something else than was sent.
    init(_ sent: Wanted, kept record: BackendEntry?, status: EntryStatus, in objects: ReportingObjects) {
        var sent = sent
        sent.delivery = nil
        guard let record else {
            self.init(wanted: sent, status: status)
            return
        }
        let kept = Observation(record, over: sent.fields, confirmed: sent, in: objects).wanted
        self.init(wanted: kept, status: status, sent: sent)
    }
}
