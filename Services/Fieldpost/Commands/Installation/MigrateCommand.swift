import ArgumentParser
import Audit
import CommandLineSupport
import Foundation
import Postgres

/// `fieldpost migrate`: brings the database's schema to this program's version.
struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Bring the database's schema to this program's version.")

    @Option(help: "Folder of schema files. (default: FIELDPOST_SCHEMA or deploy/schema)") var schema: String?
    @Flag(help: "Also apply files that need all services upgraded.") var finish = false
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let folder = schema ?? ProcessInfo.processInfo.environment["FIELDPOST_SCHEMA"] ?? "deploy/schema"
        let files = try SchemaFile.read(folder)
        var limits = Limits()
        limits.statementMax = .seconds(600)
        // Waits for another migration that is in progress.
        limits.lockMax = .seconds(120)
        var connection = try database.connect(limits, check: nil)
        let applied = try Migration.run(files, finishes: finish, on: &connection, show: Self.show)
        let new = applied.filter(\.isNew).map(\.file)
        if !new.isEmpty {
            try connection.run(Administrator.commandLine.audit(.schemaMigrated, new.joined(separator: " "), in: nil))
        }
        let table = Table([.right("NUMBER"), "FILE", "APPLIED AT", "STATE"], applied, empty: "no schema files") {
            [String($0.number), $0.file, $0.appliedAt, $0.isNew ? "applied now" : "applied before"]
        }
        try output.show(applied, table)
        if let waiting = files.dropFirst(applied.count).first, let condition = waiting.finishesWhen {
            printError("\(waiting.name) waits until \(condition); then run: fieldpost migrate --finish\n")
        }
    }

    /// Overwrites one line of progress on a terminal; otherwise prints only the last one.
    private static func show(_ steps: MigrationSteps, isLast: Bool) {
        if Terminal.showsProgress { Terminal.showProgress(steps.text) } else if isLast { printError(steps.text) }
        if isLast { printError("\n") }
    }
}
