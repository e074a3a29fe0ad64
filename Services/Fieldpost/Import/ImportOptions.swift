import ArgumentParser
import BackendConnections
import Backends
import CommandLineSupport
import Foundation
import Model
import Postgres
import Tenants

/// What the imports that read row by row have in common.
struct ImportOptions: ParsableArguments {
    @Option(help: "The environment; needed when there are several.") var environment: String?
    @Option(help: ArgumentHelp("At most so many bad lines are shown; all are counted.", valueName: "count"))
    var problems = 20
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (0...10_000).contains(problems) else { throw ValidationError("--problems is from 0 to 10000") }
    }

    /// Begins an import.
    func begin(_ source: ImportSource) throws -> ObjectImport {
        var connection = try database.connect()
        let environment = try EnvironmentStore.find(environment, on: &connection)
        let hasBackend = try connection.run(BackendConfiguration.revision(in: environment)).count > 0
        return ObjectImport(
            source.name, in: environment, hasBackend: hasBackend, on: connection, problemsKept: problems)
    }

    /// Ends the import, and says what came of it.
    ///
    /// - Parameters:
    ///   - lines: How many lines or rows were read.
    ///   - table: What else is counted.
    /// - Throws: `CommandFailure` when some are not in.
    func end(
        _ work: consuming ObjectImport, lines: Int, of what: String, _ table: [(what: String, count: Int)] = []
    ) throws {
        try work.end()
        let (counts, problems, warnings) = (work.counts, work.problems, work.warnings)
        if output.json {
            try printJSON(
                Answer(
                    lines: lines, created: counts.created, replaced: counts.replaced, unchanged: counts.unchanged,
                    refused: problems.count, warned: warnings.count, problems: problems.kept, warnings: warnings.kept,
                    rows: table.isEmpty ? nil : Dictionary(table.map { ($0.what, $0.count) }) { first, _ in first }))
        } else {
            FileHandle.standardError.write(Data((problems.text + warnings.text(as: "warning: ")).utf8))
            var rows = Table([("WHAT", .left), ("COUNT", .right)], empty: "")
            let all = [
                (what, lines), ("objects created", counts.created), ("objects replaced", counts.replaced),
                ("objects unchanged", counts.unchanged), ("\(what) refused", problems.count),
                ("warnings", warnings.count),
            ]
            for (what, count) in table + all { rows.add([what, "\(count)"]) }
            print(rows.text, terminator: "")
        }
        guard problems.count > 0 else { return }
        throw CommandFailure("\(problems.count) of \(lines) \(what) are not in")
    }

    private struct Answer: Encodable {
        let lines, created, replaced, unchanged, refused, warned: Int
        let problems, warnings: [ImportProblems.Problem]
        let rows: [String: Int]?
    }
}
