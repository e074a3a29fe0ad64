import ArgumentParser
import Audit
import CommandLineSupport
import Essentials
import Foundation
import Model
import ObjectStore
import Postgres

/// `fieldpost migrate`: brings the database's schema to this program's version.
struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Bring the database's schema to this program's version.")

    @Option(help: "Folder of the schema files. (default: FIELDPOST_SCHEMA or deploy/schema)") var schema: String?
    @Flag(help: "Also apply what has to wait until no service of the release before is left.") var finish = false
    @OptionGroup var database: DatabaseOptions
    @OptionGroup var output: OutputOptions

    func run() throws {
        let folder = schema ?? ProcessInfo.processInfo.environment["FIELDPOST_SCHEMA"] ?? "deploy/schema"
        let files = try SchemaFile.read(folder)
        var limits = Limits()
        limits.statementMax = .seconds(600)
        // Another migration may be under way: this one waits for it.
        limits.lockMax = .seconds(120)
        var connection = try database.connect(limits, check: nil)
        let applied = try Migration.run(files, finishes: finish, on: &connection, show: Self.show)
        let new = applied.filter(\.isNew).map(\.file)
        if !new.isEmpty {
            try connection.run(Administrator.commandLine.audit(.schemaMigrated, new.joined(separator: " "), in: nil))
        }
        var table = Table(
            [("NUMBER", .right), ("FILE", .left), ("APPLIED AT", .left), ("STATE", .left)], empty: "no schema files")
        for row in applied {
            table.add([String(row.number), row.file, row.appliedAt, row.isNew ? "applied now" : "there"])
        }
        try output.show(applied, table)
        if let waiting = files.dropFirst(applied.count).first, let condition = waiting.finishesWhen {
            Self.tell("\(waiting.name) waits until \(condition); then run: fieldpost migrate --finish\n")
        }
    }

    /// A line that is written over, for who waits at a terminal; how it went, for everybody.
    private static func show(_ steps: MigrationSteps, isLast: Bool) {
        if isatty(STDERR_FILENO) == 1 { tell("\r\u{1B}[K" + steps.text) } else if isLast { tell(steps.text) }
        if isLast { tell("\n") }
    }

    private static func tell(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
