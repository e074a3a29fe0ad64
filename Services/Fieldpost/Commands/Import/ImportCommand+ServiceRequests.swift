import ArgumentParser
import ImportSources
import Model

extension ImportCommand {
    /// `fieldpost import la311`: imports service requests of Los Angeles as tasks.
    struct LA311: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "la311",
            abstract: "Import service requests of Los Angeles as tasks and teams.",
            discussion: """
                FILE is a CSV file of MyLA311 open data. A row is a master task in /manager, with an id derived from \
                its SRNumber: RequestType is the title, ServiceDate the due date, AssignTo the team. Teams are in \
                /common, with ids derived from their names. Times are local times of Los Angeles, with the daylight \
                saving rules since 2007.

                Closed requests are completed tasks, Open ones are not. Referred Out is an open task without a team. \
                Cancelled requests are only counted. Importing again changes nothing, except for tasks that were \
                changed since: they get the file's state again.

                Pipe a compressed file: zcat FILE | fieldpost import la311 -
                """)
        @Argument(help: "File to import, or - for standard input.") var file: String
        @OptionGroup var options: ImportOptions

        func run() throws {
            let source = try ImportSource(file)
            var rows = try CSVReader.begin(try source.lines(), needed: ServiceRequest.columns, name: file)
            var objectImport = try options.begin(source)
            var requests = ServiceRequests()
            var progress = ImportProgress(bytesTotal: source.bytesTotal)
            var rowCount = 0
            while let row = try rows.next() {
                rowCount += 1
                for object in Self.objects(row, &requests, &objectImport) {
                    try objectImport.add(object, line: row.line)
                }
                progress.show(bytes: rows.bytesRead, lines: rowCount, problems: objectImport.problems.count)
            }
            try objectImport.flush()
            progress.end()
            let counts = requests.counts
            try options.end(
                objectImport, lines: rowCount, of: "rows",
                [
                    ("teams", counts.teams), ("tasks completed", counts.completed), ("tasks open", counts.open),
                    ("tasks referred out", counts.referred), ("requests cancelled", counts.cancelled),
                    ("tasks without team", counts.withoutTeam),
                    ("tasks without coordinates", counts.withoutCoordinates),
                    ("tasks without due date", counts.withoutDueDate),
                ])
        }

        private static func objects(
            _ row: CSVReader.Row, _ requests: inout ServiceRequests, _ objectImport: inout ObjectImport
        ) -> [ImportedObject] {
            do throws(ImportProblem) { return try requests.objects(row) } catch {
                objectImport.reject(error, line: row.line)
                return []
            }
        }
    }
}
