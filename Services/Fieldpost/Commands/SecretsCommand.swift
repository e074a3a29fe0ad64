import ArgumentParser
import Audit
import CommandLineSupport
import ObjectStore
import Postgres
import Secrets
import ServiceRuntime
import ServiceSettings

/// `fieldpost secrets`: what is kept sealed in PostgreSQL.
struct SecretsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets", abstract: "What is kept sealed in PostgreSQL.", subcommands: [Seal.self])

    struct Seal: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Seal every stored secret with the first of FIELDPOST_SECRET_KEYS.",
            discussion: """
                When it ends with status 0, keys behind the first one are not needed by any client secret, back end's
                password, defects' account or refresh token. Logins and events that are under way are sealed too, and
                expire with their sessions. What does not open with any key stays as it is, and is told; the status is
                1 then. The command may be run again at any time.
                """)
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let secrets = try SecretOptions.box()
            guard secrets.canSeal else { throw CommandFailure("\(Setting.secretKeys.variable) is not set") }
            var connection = try database.connect()
            var rows: [SecretStore.Count] = []
            for sort in SecretStore.Sort.allCases {
                rows.append(try SecretStore.seal(sort, with: secrets, on: &connection))
            }
            try connection.run(
                Administrator.commandLine.audit(
                    .secretsSealed, "\(rows.map(\.sealed).reduce(0, +))", in: nil,
                    detail: Dictionary(uniqueKeysWithValues: rows.map { ($0.sort, "\($0.sealed)") })))
            var table = Table(
                [("SECRETS", .left), ("SEALED ANEW", .right), ("WERE ALREADY", .right), ("DO NOT OPEN", .right)],
                empty: "")
            for row in rows { table.add([row.sort, "\(row.sealed)", "\(row.current)", "\(row.unreadable)"]) }
            try output.show(rows, table)
            if rows.contains(where: { $0.unreadable > 0 }) { throw ExitCode(1) }
        }
    }
}
