import Essentials
import Foundation
import Model

/// Converts OpenStack's meetings, and their history, to appointments.
struct MeetingCalendar: Sendable {
    /// A chair of a meeting.
    struct Chair: Hashable, Sendable {
        let name: String
        let email: String

        var id: UUID { UUID(name: "meetings/person/\(email)", in: MeetingCalendar.namespace) }
    }

    /// A meeting, or an edit of one.
    struct Line: Decodable, Sendable {
        struct Meeting: Decodable, Sendable {
            let project: String
            let schedule: [MeetingSlot]
            let chair: String?
        }

        let file: String
        let meeting: Meeting
        /// The commit and day of an edit; `nil` for a current meeting.
        let edit: (commit: String, day: Day)?
        let isDeletion: Bool

        private enum CodingKeys: CodingKey { case file, op, commit, authored, meeting }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            file = try container.decode(String.self, forKey: .file)
            let operation = try container.decodeIfPresent(String.self, forKey: .op)
            isDeletion = operation == "delete"
            guard operation != nil else {
                edit = nil
                meeting = try Meeting(from: decoder)
                return
            }
            let authored = try container.decode(ZonedTime.self, forKey: .authored)
            let moment = Timestamp(millisecondsSinceEpoch: authored.millisecondsSinceEpoch)
            edit = (try container.decode(String.self, forKey: .commit), moment.day)
            meeting =
                try container.decodeIfPresent(Meeting.self, forKey: .meeting)
                ?? Meeting(project: "", schedule: [], chair: nil)
        }
    }

    /// The permanent namespace of ids derived from names of this source.
    static let namespace = UUID(
        uuid: (0x1E, 0x92, 0x7D, 0xA4, 0x30, 0xBB, 0x4C, 0x16, 0x8F, 0x41, 0xD5, 0x08, 0x6A, 0x73, 0xCE, 0x22))

    /// The domain of people's addresses.
    let domain: String
    /// The earliest day of meetings that are not edits.
    var from: Day?

    /// The default duration of a meeting.
    private static let durationMinutesDefault = 60

    /// Decodes the lines of a file, except empty ones, and passes each to `body` with its index.
    ///
    /// - Throws: ``PublicDataProblem``, which names the line.
    static func forEachLine(
        of bytes: [UInt8], _ body: (_ index: Int, Line) throws -> Void
    ) throws(PublicDataProblem) {
        for (index, text) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
            do { try body(index, try read(Array(text))) } catch {
                let reason = (error as? DecodingError)?.locatedDescription ?? "\(error)"
                throw PublicDataProblem("line \(index + 1): \(reason)")
            }
        }
    }

    /// - Throws: `DecodingError`, or ``PublicDataProblem`` for a duplicate name in an object.
    private static func read(_ bytes: [UInt8]) throws -> Line {
        do throws(JSONError) { try JSONCheck.checkKeys(ofFile: bytes) } catch { throw PublicDataProblem("\(error)") }
        return try JSONDecoder().decode(Line.self, from: Data(bytes))
    }

    /// Returns the distinct chairs in order: `Ana Ito (ana), Bo Li (bo)`.
    func chairs(of line: Line) -> [Chair] {
        let separators = [" / ", " & ", " and ", " or "]
        let text = separators.reduce(line.meeting.chair ?? "") { $0.replacingOccurrences(of: $1, with: ",") }
        var chairs: [Chair] = []
        for part in text.split(separator: ",") {
            let parts = part.split(separator: "(", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard let name = parts.first(where: { !Self.slug($0).isEmpty }),
                let address = EmailAddress("\(Self.slug(name).excerpt)@\(domain)")
            else { continue }
            let chair = Chair(name: name.replacingOccurrences(of: ")", with: ""), email: address.description)
            if !chairs.contains(where: { $0.email == chair.email }) { chairs.append(chair) }
        }
        return chairs
    }

    /// Returns lower-case ASCII letters and digits separated by points; diacritics are removed.
    private static func slug(_ name: String) -> String {
        name.decomposedStringWithCanonicalMapping.unicodeScalars
            .filter { !$0.properties.isDiacritic && $0.properties.canonicalCombiningClass == .notReordered }
            .split { !($0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil)) }
            .map { EmailAddress.lowered(String(String.UnicodeScalarView($0))) }.joined(separator: ".")
    }

    /// Returns the first occurrence of each time of the meeting, an appointment of the first chair.
    func items(of line: Line) throws(PublicDataProblem) -> [FieldworkPlan.CalendarItem] {
        var items: [FieldworkPlan.CalendarItem] = []
        for (index, slot) in line.meeting.schedule.enumerated() {
            let day = line.edit?.day ?? [slot.start, from].compactMap(\.self).max()
            guard let day else { throw PublicDataProblem("a time of the meeting has no start date; give --from") }
            let name = ["meetings", line.file, line.edit?.commit, "\(index)"].compactMap(\.self).joined(separator: "/")
            let room = slot.irc.map { " (#\($0))" } ?? ""
            items.append(
                FieldworkPlan.CalendarItem(
                    id: UUID(name: name, in: Self.namespace),
                    appointment: Appointment(
                        when: try slot.occurrence(from: day),
                        durationMinutes: slot.duration ?? Self.durationMinutesDefault,
                        why: line.meeting.project + room)))
        }
        return items
    }
}
