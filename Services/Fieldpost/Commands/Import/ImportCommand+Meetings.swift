import ArgumentParser
import Essentials
import FoundationEssentials
import ImportSources
import Model

extension ImportCommand {
    /// `fieldpost import meetings`: imports OpenStack's meetings as appointments.
    struct Meetings: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "meetings",
            abstract: "Import OpenStack's meetings, or their history, as appointments.",
            discussion: """
                FILE has a line of JSON for each meeting of the repository irc-meetings, or for each edit of one. For \
                each time of a meeting, its first occurrence since its start date becomes an appointment; for an edit \
                that added or changed a meeting, the first one since the edit, so that a calendar shows the schedule \
                of that time. The first chair owns the appointment, and shares it with the other chairs.

                Chairs are added as NAME@DOMAIN if they do not exist: "Ana Ito (ana)" is ana.ito@DOMAIN. Importing \
                again changes nothing.

                Pipe a compressed file: zcat FILE | fieldpost import meetings -
                """)
        @Argument(help: "File to import, or - for standard input.") var file: String
        @Option(help: "Domain of people's e-mail addresses, such as acme.example.") var domain: String
        @Option(help: ArgumentHelp("Earliest day of appointments that are not edits.", valueName: "date"))
        var from: String?
        @OptionGroup var options: ImportOptions

        func validate() throws {
            guard EmailAddress("a@\(domain)") != nil else {
                throw ValidationError("--domain \(domain) is not a domain")
            }
            guard from == nil || day != nil else { throw ValidationError("--from must be a date as yyyy-MM-dd") }
        }

        private var day: Day? { from.flatMap { Day($0) } }

        private struct Counts {
            var appointments = 0
            var shared = 0
            var deletions = 0
        }

        func run() throws {
            let source = try ImportSource(file)
            var reader = try source.lines()
            var objects = try options.begin(source)
            let meetings = MeetingCalendar(domain: domain, from: day)
            var (people, counts, lineCount) = ([String: UUID](), Counts(), 0)
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            while let line = try reader.next() {
                if line.isBlank { continue }
                lineCount += 1
                do {
                    try Self.add(line, meetings, &people, &counts, to: &objects)
                } catch let problem as ImportProblem {
                    objects.reject(problem, line: line.number)
                } catch let error as DecodingError {
                    objects.reject(ImportProblem(error.locatedDescription), line: line.number)
                }
                progress.show(bytes: reader.bytesRead, lines: lineCount, problems: objects.problems.count)
            }
            try objects.flush()
            progress.end()
            try options.end(
                objects, lines: lineCount, of: "lines",
                [
                    ("appointments", counts.appointments), ("shared with others", counts.shared),
                    ("people", people.count), ("deletions, ignored", counts.deletions),
                ])
        }

        private static func add(
            _ line: LineReader.Line, _ meetings: MeetingCalendar, _ people: inout [String: UUID],
            _ counts: inout Counts, to objectImport: inout ObjectImport
        ) throws {
            guard let bytes = line.bytes else {
                throw ImportProblem("the line has more than \(LineReader.bytesMax) bytes")
            }
            let meeting = try MeetingCalendar.read(bytes)
            if meeting.isDeletion {
                counts.deletions += 1
                return
            }
            let items = try meetings.items(of: meeting)
            let chairs = meetings.chairs(of: meeting)
            guard let owner = chairs.first else { throw ImportProblem("it has no chair to own the appointment") }
            let unknown = chairs.filter { people[$0.email] == nil }
            if !unknown.isEmpty {
                let added = try objectImport.people(unknown.map { ($0.email, $0.id, $0.name) })
                people.merge(added) { first, _ in first }
            }
            let realm = try RealmPath.user(owner.email)
            for item in items {
                var objects = [try ImportedObject(.appointment, item.id, in: realm, item.appointment)]
                for recipient in chairs.dropFirst().compactMap({ people[$0.email] }) {
                    let shared = SharedItem(kind: .appointment, item: item.id, recipient: recipient)
                    objects.append(
                        try ImportedObject(.sharedItem, SharedItem.id(of: item.id, with: recipient), in: realm, shared))
                }
                for object in objects { try objectImport.add(object, line: line.number) }
                counts.appointments += 1
                counts.shared += objects.count - 1
            }
        }
    }
}
