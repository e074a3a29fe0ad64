import ArgumentParser
import Audit
import CommandLineSupport
import Postgres
import Secrets
import ServiceSettings

/// `fieldpost secrets`: manages secrets that PostgreSQL stores sealed.
struct SecretsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets", abstract: "Manage the sealed secrets in PostgreSQL.", subcommands: [Seal.self])

    struct Seal: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Re-seal all secrets with the first of FIELDPOST_SECRET_KEYS.",
            discussion: """
                After status 0, no client secret, back-end password, defect account or refresh token needs the other \
                keys. Logins and events in progress are re-sealed too, and expire with their sessions. A secret that \
                no key opens is kept and reported; the status is 1 then. The command can be repeated at any time.
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
            let table = Table(["SECRETS", .right("RE-SEALED"), .right("CURRENT"), .right("UNREADABLE")], rows) {
                [$0.sort, "\($0.sealed)", "\($0.current)", "\($0.unreadable)"]
            }
            try output.show(rows, table)
            if rows.contains(where: { $0.unreadable > 0 }) { throw ExitCode(1) }
        }
    }
}
