import ArgumentParser
import DataFiles
import Essentials
import Foundation
import Model

/// `workbench convert`: converts public data for a trial.
struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert", abstract: "Convert public data to lines for fieldpost import objects.",
        subcommands: [LA311.self, Meetings.self])

    /// `workbench convert la311`: converts service requests of Los Angeles to tasks.
    struct LA311: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "la311",
            abstract: "Convert service requests of Los Angeles to tasks and teams.",
            discussion: """
                FILE is a CSV file of MyLA311 open data, plain or gzipped. A row is a master task in /manager, with \
                an id derived from its SRNumber: RequestType is the title, ServiceDate the due date, AssignTo the \
                team. Teams are in /common, with ids derived from their names. Times are local times of Los Angeles, \
                with the daylight saving rules since 2007.

                Closed requests are completed tasks, Open ones are not. Referred Out is an open task without a team. \
                Cancelled requests are omitted. An invalid row is an error, and nothing is printed.

                Import the lines with: workbench convert la311 FILE | fieldpost import objects -
                """)
        @Argument(help: "File to convert.") var file: String

        func run() throws {
            let lines = try ImportLines(ServiceRequest.rows(of: CSV(DataFile.read(file))))
            try FileHandle.standardOutput.write(contentsOf: Data(lines.bytes))
        }
    }

    /// `workbench convert meetings`: converts OpenStack's meetings to appointments.
    struct Meetings: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "meetings",
            abstract: "Convert OpenStack's meetings, or their history, to appointments.",
            discussion: """
                FILE has a line of JSON for each meeting of the repository irc-meetings, or for each edit of one; it \
                is plain or gzipped. Deletions are omitted. An invalid line is an error, and nothing is printed.

                For each time of a meeting, its first occurrence since its start date becomes an appointment; for an \
                edit that added or changed a meeting, the first one since the edit, so that a calendar shows the \
                schedule of that time. The first chair owns the appointment, and shares it with the other chairs.

                Chairs are people with the address NAME@DOMAIN: "Ana Ito (ana)" is ana.ito@DOMAIN. A chair whose \
                address already has a person is rejected by the import.

                Import the lines with: workbench convert meetings FILE --domain DOMAIN | fieldpost import objects -
                """)
        @Argument(help: "File to convert.") var file: String
        @Option(help: ArgumentHelp("Domain of people's addresses, such as acme.example.", valueName: "domain"))
        var domain: String
        @Option(help: ArgumentHelp("Earliest day of appointments that are not edits.", valueName: "date"))
        var from: String?

        func validate() throws {
            guard EmailAddress("a@\(domain)") != nil else {
                throw ValidationError("--domain \(domain) is not a domain")
            }
            guard from == nil || day != nil else { throw ValidationError("--from must be a date as yyyy-MM-dd") }
        }

        private var day: Day? { from.flatMap { Day($0) } }

        func run() throws {
            let calendar = MeetingCalendar(domain: domain, from: day)
            let lines = try ImportLines(meetings: Array(DataFile.read(file)), by: calendar)
            try FileHandle.standardOutput.write(contentsOf: Data(lines.bytes))
        }
    }
}
