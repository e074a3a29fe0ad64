package import Essentials
package import Foundation
package import Model

/// OpenStack's meetings, and their history, as appointments.
package struct MeetingCalendar: Sendable {
    /// A person who chairs.
    package struct Chair: Hashable, Sendable {
        package let name: String
        package let email: String

        package var id: UUID { UUID(name: "meetings/person/\(email)", in: MeetingCalendar.namespace) }
    }

    /// A meeting, or an edit of one.
    package struct Line: Decodable, Sendable {
        package struct Meeting: Decodable, Sendable {
            package let project: String
            package let schedule: [MeetingSlot]
            package let chair: String?
        }

        package let file: String
        package let meeting: Meeting
        /// Of an edit: which one, and since when it was so.
        package let edit: (commit: String, day: Day)?
        package let isDeletion: Bool

        private enum CodingKeys: CodingKey { case file, op, commit, authored, meeting }

        package init(from decoder: any Decoder) throws {
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

    /// An appointment of the first chair.
    package struct Item: Sendable {
        package let id: UUID
        package let appointment: Appointment
    }

    /// The namespace of ids made of names of this source, chosen once and for ever.
    static let namespace = UUID(
        uuid: (0x1E, 0x92, 0x7D, 0xA4, 0x30, 0xBB, 0x4C, 0x16, 0x8F, 0x41, 0xD5, 0x08, 0x6A, 0x73, 0xCE, 0x22))

    /// What the addresses of people end in.
    let domain: String
    /// The earliest day of what is no edit.
    let from: Day?

    /// How long a meeting takes that does not say it.
    private static let minutesOtherwise = 60

    /// Reads calendars.
    package init(domain: String, from: Day? = nil) {
        self.domain = domain
        self.from = from
    }

    /// Reads a line.
    ///
    /// - Throws: `DecodingError`, or ``ImportProblem`` for a name that is given twice in an object.
    package static func read(_ bytes: [UInt8]) throws -> Line {
        do throws(JSONProblem) { try JSONCheck.checkKeys(ofFile: bytes) } catch { throw ImportProblem("\(error)") }
        return try JSONDecoder().decode(Line.self, from: Data(bytes))
    }

    /// The chairs in their order, each once: `Ana Ito (ana), Bo Li (bo)`.
    package func chairs(of line: Line) -> [Chair] {
        let separators = [" / ", " & ", " and ", " or "]
        let text = separators.reduce(line.meeting.chair ?? "") { $0.replacingOccurrences(of: $1, with: ",") }
        var chairs: [Chair] = []
        for part in text.split(separator: ",") {
            let words = part.split(separator: "(", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard let name = words.first(where: { !Self.slug($0).isEmpty }),
                let address = EmailAddress("\(Self.slug(name).excerpt)@\(domain)")
            else { continue }
            let chair = Chair(name: name.replacingOccurrences(of: ")", with: ""), email: address.description)
            if !chairs.contains(where: { $0.email == chair.email }) { chairs.append(chair) }
        }
        return chairs
    }

    /// ASCII letters and digits with points between: marks above letters are left out.
    private static func slug(_ name: String) -> String {
        name.decomposedStringWithCanonicalMapping.unicodeScalars
            .filter { !$0.properties.isDiacritic && $0.properties.canonicalCombiningClass == .notReordered }
            .split { !($0.isASCII && ($0.properties.isAlphabetic || $0.properties.numericType != nil)) }
            .map { EmailAddress.lowered(String(String.UnicodeScalarView($0))) }.joined(separator: ".")
    }

    /// What is in the calendar: of each time of the meeting its first occurrence.
    package func items(of line: Line) throws(ImportProblem) -> [Item] {
        var items: [Item] = []
        for (index, slot) in line.meeting.schedule.enumerated() {
            let day = line.edit?.day ?? [slot.start, from].compactMap(\.self).max()
            guard let day else { throw ImportProblem("a time of it has no start date; give --from") }
            let name = ["meetings", line.file, line.edit?.commit, "\(index)"].compactMap(\.self).joined(separator: "/")
            let room = slot.irc.map { " (#\($0))" } ?? ""
            items.append(
                Item(
                    id: UUID(name: name, in: Self.namespace),
                    appointment: Appointment(
                        when: try slot.occurrence(from: day), durationMinutes: slot.duration ?? Self.minutesOtherwise,
                        why: line.meeting.project + room)))
        }
        return items
    }
}
