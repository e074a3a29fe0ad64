import ArgumentParser
import FoundationEssentials
import Model
import Postgres
import Realms
import Runtime

/// `fieldpost audit`: who did what, when, and from where.
struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "The audit log: logins, permissions, acts of administrators.",
        subcommands: [List.self, Prune.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List records, the newest last.")
        @Option(help: "Only those of this environment.") var environment: String?
        @Option(help: "Only those whose action begins so, such as role or login.refused.") var action: String?
        @Option(help: "Only those of this actor: an e-mail address, integration:NAME or cli:USER.") var actor: String?
        @Option(help: "At most so many, the newest.") var limit = 100
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        struct Row: Encodable {
            let time: String
            let environment: String?
            let actor: String
            let action: String
            let subject: String
            let detail: String
            let address: String
        }

        func validate() throws {
            guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 100000") }
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try connection.run(
                """
                SELECT * FROM (
                    SELECT a.id, to_char(a.happened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), e.name,
                        a.actor, a.action, a.subject, a.detail::text, a.address
                    FROM access.audit a LEFT JOIN realm.environment e ON e.id = a.environment_id
                    WHERE (\(environment)::text IS NULL OR e.name = \(environment))
                        AND (\(action)::text IS NULL OR starts_with(a.action, \(action)))
                        AND (\(actor)::text IS NULL OR a.actor = \(actor))
                    ORDER BY a.id DESC LIMIT \(Int64(limit))
                ) r ORDER BY 1
                """
            ).map { row in
                Row(
                    time: try row.value(1), environment: try row.optional(2), actor: try row.value(3),
                    action: try row.value(4), subject: try row.value(5), detail: try row.value(6),
                    address: try row.value(7))
            }
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
        static let configuration = CommandConfiguration(abstract: "Remove records that are older than they are kept.")
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
            let count = try connection.run(
                "DELETE FROM access.audit WHERE happened_at < now() - make_interval(secs => \(seconds))"
            ).affectedCount
            print("\(count) records removed")
        }
    }
}
