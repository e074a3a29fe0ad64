import ArgumentParser
import Audit
import Foundation
import Postgres
import Secrets
import TenantMigration

/// What both ends of a move have.
struct MoveOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The environment variable with the transfer key, 32 bytes in base64, the same at both installations.",
            valueName: "variable"))
    var keyFrom: String

    func transfer() throws -> SecretBox { try SecretBox([SecretOptions.value(of: keyFrom)]) }
}

extension EnvironmentCommand {
    /// `fieldpost environment export`: the sending end of a move.
    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write an environment to standard output, to be moved to another installation.",
            discussion: """
                It copies what is there while the environment works, and then holds it: nothing of it can be written, \
                and devices are asked to come again, until it has left or is taken back. Meant for a pipe:

                  fieldpost environment export NAME --key-from KEY | ssh … fieldpost environment import --key-from KEY

                When the stream is cut, import says with which --resume the same command goes on. Afterwards import
                prints a receipt; then: fieldpost environment leave.
                """)
        @Argument(help: "The environment.") var name: String
        @Option(help: "Where the other end says that it stopped.") var resume: String?
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            let from = resume.map(MoveResume.init(text:))
            if case .some(nil) = from { throw ValidationError("--resume is not what import said") }
            var connection = try database.connect(MoveStore.limits)
            var export = try EnvironmentExport(
                name, secrets: try SecretOptions.box(), transfer: try options.transfer(), resume: from ?? nil,
                on: &connection, write: { try FileHandle.standardOutput.write(contentsOf: $0) })
            try export.run(on: &connection)
            FileHandle.standardError.write(
                Data("\(name): \(export.rowCount) rows, \(export.heldCount) of them while it is held\n".utf8))
        }
    }

    /// `fieldpost environment take-back`: the old place goes on.
    struct TakeBack: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "take-back", abstract: "Let an environment that was to be moved go on here.",
            discussion: """
                It can be taken back until it has left. Devices download it anew, and everything of it is published \
                again. What arrived of it elsewhere can never begin: fieldpost environment discard removes it there.
                """)
        @Argument(help: "The environment.") var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            guard let move = try MoveStore.find(name, on: &connection),
                move.state == .copying || move.state == .held
            else { throw CommandFailure("\(name) is not leaving here, or has left") }
            let audit = Administrator.commandLine.audit(.environmentTakenBack, name, in: move.environment)
            try MoveStore.takeBack(move, also: audit, on: &connection)
            print("\(name) goes on here")
        }
    }

    /// `fieldpost environment leave`: the old place lets it go.
    struct Leave: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let an environment go, of which another installation has everything.",
            discussion: """
                From then on it is never written here again, and devices are told that it has moved. It prints the \
                permission without which the other installation does not begin: fieldpost environment begin. It may be \
                asked for again.
                """)
        @Argument(help: "The environment.") var name: String
        @Argument(help: "What import printed at the other installation.") var receipt: String
        @Option(help: "The address of the other installation's device API, which devices are told.") var to: String?
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            let permission = try MoveBeginning.leave(
                name, receipt: receipt, to: to, transfer: try options.transfer(),
                also: { Administrator.commandLine.audit(.environmentLeft, name, in: $0) }, on: &connection)
            print(permission)
        }
    }
}
