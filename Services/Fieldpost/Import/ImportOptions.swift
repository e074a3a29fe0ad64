import ArgumentParser
import BackendConnections
import Backends
import CommandLineSupport
import Foundation
import Model
import Postgres
import Tenants

/// The options of imports that read line by line.
struct ImportOptions: ParsableArguments {
    @Option(help: "Environment; required if there are several.") var environment: String?
    @Option(help: ArgumentHelp("Maximum number of invalid lines to print.", valueName: "count"))
    var problems = 20
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (0...10_000).contains(problems) else {
            throw ValidationError("--problems must be from 0 to 10000, not \(problems)")
        }
    }

    /// Starts an import.
    func begin(_ source: ImportSource) throws -> ObjectImport {
        var connection = try database.connect()
        let environment = try EnvironmentStore.find(environment, on: &connection)
        let hasBackend = try connection.run(BackendConfiguration.revision(in: environment)).count > 0
        return ObjectImport(
            source.name, in: environment, hasBackend: hasBackend, on: connection, problemCountMax: problems)
    }

    /// Ends the import and prints the result.
    ///
    /// - Parameters:
    ///   - lines: The number of lines or rows that were read.
    ///   - table: Further counts.
    /// - Throws: `CommandFailure` if lines were rejected.
    func end(
        _ objectImport: consuming ObjectImport, lines: Int, of unit: String, _ table: [(label: String, count: Int)] = []
    ) throws {
        try objectImport.end()
        let (counts, problems, warnings) = (objectImport.counts, objectImport.problems, objectImport.warnings)
        if output.json {
            try printJSON(
                Summary(
                    lines: lines, created: counts.created, replaced: counts.replaced, unchanged: counts.unchanged,
                    refused: problems.count, warned: warnings.count, problems: problems.retained,
                    warnings: warnings.retained,
                    rows: table.isEmpty ? nil : Dictionary(table.map { ($0.label, $0.count) }) { first, _ in first }))
        } else {
            FileHandle.standardError.write(Data((problems.text + warnings.text(as: "warning: ")).utf8))
            var rows = Table([("RESULT", .left), ("COUNT", .right)], empty: "")
            let all = [
                (unit, lines), ("objects created", counts.created), ("objects replaced", counts.replaced),
                ("objects unchanged", counts.unchanged), ("\(unit) rejected", problems.count),
                ("warnings", warnings.count),
            ]
            for (label, count) in table + all { rows.add([label, "\(count)"]) }
            print(rows.text, terminator: "")
        }
        guard problems.count > 0 else { return }
        throw CommandFailure("\(problems.count) of \(lines) \(unit) were rejected")
    }

    private struct Summary: Encodable {
        let lines, created, replaced, unchanged, refused, warned: Int
        let problems, warnings: [ImportProblems.Problem]
        let rows: [String: Int]?
    }
}
