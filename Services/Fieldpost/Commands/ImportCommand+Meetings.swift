import ArgumentParser
import Essentials
import FoundationEssentials
import ImportSources
import Model

extension ImportCommand {
    /// `fieldpost import meetings`: OpenStack's meetings as appointments.
    struct Meetings: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "meetings",
            abstract: "Write the OpenStack project's meetings, or their history, as appointments.",
            discussion: """
                FILE has a line of JSON for each meeting of the repository irc-meetings, or for each edit of one. Of \
                each time of a meeting its first occurrence since its start date becomes an appointment; of an edit \
                that added or changed a meeting, the first one since the edit, so that a calendar shows what was \
                agreed then. The first chair owns it, and shares it with the others.

                Chairs are let in as NAME@DOMAIN, where they are not known: "Ana Ito (ana)" is ana.ito@DOMAIN. \
                Importing again changes nothing.

                A compressed file is read so: zcat FILE | fieldpost import meetings -
                """)
        @Argument(help: "The file, or - for standard input.") var file: String
        @Option(help: "What people's addresses end in, such as acme.example.") var domain: String
        @Option(help: ArgumentHelp("No appointment is before this day, an edit's excepted.", valueName: "date"))
        var from: String?
        @OptionGroup var options: ImportOptions

        func validate() throws {
            guard EmailAddress("a@\(domain)") != nil else { throw ValidationError("--domain \(domain): no domain") }
            guard from == nil || day != nil else { throw ValidationError("--from is a date as yyyy-MM-dd") }
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
            var work = try options.begin(source)
            let meetings = MeetingCalendar(domain: domain, from: day)
            var (people, counts, lineCount) = ([String: UUID](), Counts(), 0)
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            while let line = try reader.next() {
                if line.isBlank { continue }
                lineCount += 1
                do {
                    try Self.add(line, meetings, &people, &counts, to: &work)
                } catch let problem as ImportProblem {
                    work.refuse(problem, line: line.number)
                } catch let error as DecodingError {
                    work.refuse(ImportProblem(error.place), line: line.number)
                }
                progress.show(bytes: reader.bytesRead, lines: lineCount, problems: work.problems.count)
            }
            try work.flush()
            progress.end()
            try options.end(
                work, lines: lineCount, of: "lines",
                [
                    ("appointments", counts.appointments), ("shared with others", counts.shared),
                    ("people", people.count), ("deletions, which leave what was", counts.deletions),
                ])
        }

        private static func add(
            _ line: LineReader.Line, _ meetings: MeetingCalendar, _ people: inout [String: UUID],
            _ counts: inout Counts, to work: inout ObjectImport
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
            guard let owner = chairs.first else { throw ImportProblem("it has no chair, who would own it") }
            let unknown = chairs.filter { people[$0.email] == nil }
            if !unknown.isEmpty {
                let found = try work.people(unknown.map { ($0.email, $0.id, $0.name) })
                people.merge(found) { first, _ in first }
            }
            let realm = try RealmPath.user(owner.email)
            for item in items {
                var objects = [try ImportedObject(.appointment, item.id, in: realm, item.appointment)]
                for recipient in chairs.dropFirst().compactMap({ people[$0.email] }) {
                    let shared = SharedItem(kind: .appointment, item: item.id, recipient: recipient)
                    objects.append(
                        try ImportedObject(.sharedItem, SharedItem.id(of: item.id, with: recipient), in: realm, shared))
                }
                for object in objects { try work.add(object, line: line.number) }
                counts.appointments += 1
                counts.shared += objects.count - 1
            }
        }
    }
}
