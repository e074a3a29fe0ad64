import ArgumentParser
import ImportSources
import Model

extension ImportCommand {
    /// `fieldpost import la311`: service requests of Los Angeles as tasks.
    struct LA311: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "la311",
            abstract: "Write service requests of the City of Los Angeles as tasks, and their crews as teams.",
            discussion: """
                FILE is a CSV file of MyLA311 open data. A row is a master task in /manager, under an id made of its \
                SRNumber: RequestType is the title, ServiceDate the due date, AssignTo the team. Teams are in /common, \
                under ids made of their names. Times are those of Los Angeles, by the rule for daylight saving time \
                since 2007.

                The state is that of the file: Closed is completed, Open is not. Referred Out is a task without a team \
                that is not completed. Cancelled is left out, and counted. Importing again changes nothing, unless \
                somebody has changed a task since: it gets the file's state again.

                A compressed file is read so: zcat FILE | fieldpost import la311 -
                """)
        @Argument(help: "The file, or - for standard input.") var file: String
        @OptionGroup var options: ImportOptions

        func run() throws {
            let source = try ImportSource(file)
            var rows = try CSVReader.begin(try source.lines(), needed: ServiceRequest.columns, name: file)
            var work = try options.begin(source)
            var requests = ServiceRequests()
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            var rowCount = 0
            while let row = try rows.next() {
                rowCount += 1
                for object in Self.objects(row, &requests, &work) { try work.add(object, line: row.line) }
                progress.show(bytes: rows.bytesRead, lines: rowCount, problems: work.problems.count)
            }
            try work.flush()
            progress.end()
            let counts = requests.counts
            try options.end(
                work, lines: rowCount, of: "rows",
                [
                    ("teams", counts.teams), ("tasks completed", counts.completed), ("tasks open", counts.open),
                    ("tasks referred out", counts.referred), ("requests cancelled", counts.cancelled),
                    ("tasks without team", counts.withoutTeam),
                    ("tasks without coordinates", counts.withoutCoordinates),
                    ("tasks without due date", counts.withoutDueDate),
                ])
        }

        private static func objects(
            _ row: CSVReader.Row, _ requests: inout ServiceRequests, _ work: inout ObjectImport
        ) -> [ImportedObject] {
            do throws(ImportProblem) { return try requests.objects(row) } catch {
                work.refuse(error, line: row.line)
                return []
            }
        }
    }
}
