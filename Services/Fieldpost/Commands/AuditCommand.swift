import ArgumentParser
import Audit
import CommandLineSupport
import Foundation
import Model
import ObjectStore
import Postgres
import ServiceRuntime
import ServiceSettings
import Telemetry
import Tenants

/// `fieldpost audit`: who did what, when, and from where.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "The audit log: logins, permissions, acts of administrators.",
        subcommands: [List.self, Prune.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the audit log's records of who did what, when, from where; the newest last.")
        @Option(help: "Only those of this environment.") var environment: String?
        @Option(help: "Only those whose action begins so, such as role or login.refused.") var action: String?
        @Option(help: "Only those of this actor: an e-mail address, integration:NAME or cli:USER.") var actor: String?
        @Option(help: "At most so many, the newest.") var limit = 100
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 100000") }
        }

        func run() throws {
            var connection = try database.connect()
            var selection = AuditStore.Selection(action: action, actor: actor)
            if let environment { selection.environment = try EnvironmentStore.find(environment, on: &connection) }
            let rows = try AuditStore.load(selection, countMax: limit, on: &connection)
            var table = Table(
                [
                    ("TIME", .left), ("ENVIRONMENT", .left), ("ACTOR", .left), ("ACTION", .left), ("SUBJECT", .left),
                    ("DETAIL", .left), ("FROM", .left),
                ], empty: "there are no such records")
            for row in rows {
                table.add([
                    row.time, row.environment ?? "-", row.actor, row.action, row.subject, row.detail, row.address,
                ])
            }
            try output.show(rows, table)
        }
    }

    struct Prune: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove the audit log's records that are older than they are kept.")
        @Option(help: "How long records are kept, such as 400d.") var keep: String
        @OptionGroup var database: DatabaseOptions

        func validate() throws {
            guard let keep = Duration(settingText: keep), keep >= .seconds(86_400) else {
                throw ValidationError("--keep must be a duration from 1d, such as 400d")
            }
        }

        func run() throws {
            var connection = try database.connect()
            let seconds = Double(Duration(settingText: keep)?.components.seconds ?? 0)
            // First of all: it is there too when the command is interrupted.
            try connection.run(Administrator.commandLine.audit(.auditPruned, "older than \(keep)", in: nil))
            let count = try AuditStore.prune(olderThan: seconds, on: &connection) { count in
                FileHandle.standardError.write(Data("\(count) records removed so far\n".utf8))
            }
            print("\(count) records removed")
        }
    }
}
