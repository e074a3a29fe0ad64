import ArgumentParser
import Audit
import Foundation
import Postgres
import Secrets
import TenantMigration

/// Options of the commands at both ends of a move.
struct MoveOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Environment variable with the transfer key: 32 bytes in base64.",
            valueName: "variable"))
    var keyFrom: String

    func transfer() throws -> SecretBox { try SecretBox([SecretOptions.value(of: keyFrom)]) }
}

extension EnvironmentCommand {
    /// `fieldpost environment export`: the source of a move.
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write an environment to standard output for a move.",
            discussion: """
                Copies the environment while it is active, then write-blocks it and sends the rest. From the \
                write-block until the cut-over or a rollback, devices get 503 with Retry-After. Both installations use \
                the same transfer key:

                  fieldpost environment export NAME --key-from KEY | ssh … fieldpost environment import --key-from KEY

                If the stream is cut, import prints the --resume with which this command resumes. At the end import \
                prints a receipt for: fieldpost environment cut-over.
                """)
        @Argument(help: "The environment.") var name: String
        @Option(help: "Resume at the point that import printed.") var resume: String?
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            let from = resume.map(MoveResume.init(text:))
            if case .some(nil) = from { throw ValidationError("--resume must be the text that import printed") }
            var connection = try database.connect(MoveStore.limits)
            var export = try EnvironmentExport(
                name, secrets: try SecretOptions.box(), transfer: try options.transfer(), resume: from ?? nil,
                on: &connection, write: { try FileHandle.standardOutput.write(contentsOf: $0) })
            try export.run(on: &connection)
            FileHandle.standardError.write(
                Data(
                    "\(name): \(export.rowCount) rows, \(export.writeBlockedCount) of them while it was write-blocked\n"
                        .utf8))
        }
    }

    /// `fieldpost environment roll-back`: cancels a move.
    struct RollBack: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "roll-back", abstract: "Cancel a move and make the environment writable again.",
            discussion: """
                Possible until the cut-over. Devices download their realms again, and all objects are republished. The \
                copy at the other installation can never be activated: delete it there with fieldpost environment \
                discard.
                """)
        @Argument(help: "The environment.") var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            guard let move = try MoveStore.find(name, on: &connection),
                move.state == .copying || move.state == .held
            else { throw CommandFailure("no move of \(name) is in progress here, or it was cut over") }
            let audit = Administrator.commandLine.audit(.environmentRolledBack, name, in: move.environment)
            try MoveStore.rollBack(move, also: audit, on: &connection)
            print("\(name) is active here")
        }
    }

    /// `fieldpost environment cut-over`: deactivates the environment at the source.
    struct CutOver: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "cut-over", abstract: "Cut an environment over to another installation.",
            discussion: """
                From now on no client can write the environment here, and devices are redirected. Prints the \
                activation token for: fieldpost environment activate at the other installation. Run again, it prints \
                the token again.
                """)
        @Argument(help: "The environment.") var name: String
        @Argument(help: "Receipt that import printed at the other installation.") var receipt: String
        @Option(help: "Redirect devices to this URL: the other installation's device API.") var to: String?
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            let token = try MoveActivation.cutOver(
                name, receipt: receipt, to: to, transfer: try options.transfer(),
                also: { Administrator.commandLine.audit(.environmentCutOver, name, in: $0) }, on: &connection)
            print(token)
        }
    }
}
