import ArgumentParser
import Audit
import CommandLineSupport
import Postgres
import ServiceSettings
import Tenants

/// `fieldpost audit`: lists and prunes the audit log.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Read and prune the audit log.", subcommands: [List.self, Prune.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List audit records, the newest last.")
        @Option(help: "Limit to records of this environment.", completion: Completion.environments)
        var environment: String?
        @Option(help: "Limit to actions with this prefix, such as role or login.refused.") var action: String?
        @Option(help: "Limit to this actor: an e-mail, integration:NAME or cli:USER.") var actor: String?
        @Option(help: "Maximum number of records, the newest.") var limit = 100
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try validateRange("--limit", limit, in: 1...100_000) }

        func run() throws {
            var connection = try database.connect()
            var selection = AuditStore.Selection(action: action, actor: actor)
            if let environment { selection.environment = try EnvironmentStore.find(environment, on: &connection) }
            let rows = try AuditStore.load(selection, countMax: limit, on: &connection)
            let table = Table(
                ["TIME", "ENVIRONMENT", "ACTOR", "ACTION", "SUBJECT", "DETAIL", "FROM"], rows,
                empty: "no audit records match"
            ) { [$0.time, $0.environment ?? "-", $0.actor, $0.action, $0.subject, $0.detail, $0.address] }
            try output.show(try rows.map(Record.init), table)
        }

        /// A record as JSON.
        private struct Record: Encodable {
            let time: String
            let environment: String?
            let actor, action, subject: String
            let detail: JSONValue
            let address: String

            init(_ row: AuditStore.Row) throws {
                (time, environment, actor, action) = (row.time, row.environment, row.actor, row.action)
                (subject, detail, address) = (row.subject, try JSONValue(json: row.detail), row.address)
            }
        }
    }

    struct Prune: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete audit records older than a retention time.")
        @Option(help: "Retention time of records, such as 400d.") var keep: String
        @OptionGroup var database: DatabaseOptions

        func validate() throws {
            guard let keep = Duration(settingText: keep), keep >= .seconds(86_400) else {
                throw ValidationError("--keep must be a duration from 1d, such as 400d")
            }
        }

        func run() throws {
            var connection = try database.connect()
            let seconds = Double(Duration(settingText: keep)?.components.seconds ?? 0)
            // Written first, so that an interrupted prune is recorded too.
            try connection.run(Administrator.commandLine.audit(.auditPruned, "older than \(keep)", in: nil))
            let count = try AuditStore.prune(olderThan: seconds, on: &connection) { count in
                printError("\(count) records removed so far\n")
            }
            print("\(count) records removed")
        }
    }
}
