import ArgumentParser
import Audit
import CommandLineSupport
import Foundation
import Postgres
import Secrets
import TenantMigration

/// Options of the commands at both ends of a move.
struct MoveOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Environment variable with the transfer key: 32 bytes in base64.", valueName: "variable"))
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
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
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
            printError(
                "\(name): \(export.rowCount) rows, \(export.writeBlockedCount) of them while it was write-blocked\n")
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
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            guard let move = try MoveStore.find(name, on: &connection), move.state == .copying || move.state == .held
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
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
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

    /// `fieldpost environment import`: the destination of a move.
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read an environment from another installation's export.",
            discussion: """
                If the stream is cut, or rejected because it was changed in transit, the rows before that are kept: \
                the status is 1, and the last line has the --resume for export. When the stream is complete, this \
                command prints a receipt for: fieldpost environment cut-over. Run again, it prints the receipt again. \
                The copy is inactive until: fieldpost environment activate.
                """)
        @Argument(help: "File to read. (default: standard input)") var file: String?
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var handle = FileHandle.standardInput
            if let file {
                guard let opened = FileHandle(forReadingAtPath: file) else {
                    throw CommandFailure("cannot read \(file)")
                }
                handle = opened
            }
            let arriving = StreamLines(handle)
            var connection = try database.connect(MoveStore.limits)
            var moving = EnvironmentImport(transfer: try options.transfer(), next: arriving.next)
            do {
                let receipt = try moving.run(on: &connection)
                printError("\(moving.name): \(moving.rowCount) rows\n")
                print(receipt)
            } catch let failure as MoveStreamFailure {
                guard !moving.name.isEmpty else {
                    throw CommandFailure(
                        "nothing arrived: \(failure.reason). See where export resumes with: fieldpost environment "
                            + "moves")
                }
                throw CommandFailure(
                    "\(failure.reason). The rows before it are kept. Resume with: fieldpost environment export"
                        + (moving.resume.map { " --resume \($0.text)" } ?? ""))
            }
        }
    }

    /// `fieldpost environment activate`: activates the environment at the destination.
    struct Activate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Activate an environment after its cut-over.",
            discussion: "Devices can connect, and all published kinds are republished.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Argument(help: "Activation token that cut-over printed.") var token: String
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            try MoveActivation.activate(
                name, token: token, secrets: try SecretOptions.box(), transfer: try options.transfer(),
                also: { Administrator.commandLine.audit(.environmentActivated, name, in: $0) }, on: &connection)
            print("\(name) is active here")
        }
    }

    /// `fieldpost environment discard`: removes an incomplete or inactive copy, or the rows of an environment that was
    /// cut over.
    struct Discard: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Delete an inactive copy, or the rows left after a cut-over.",
            discussion: """
                After a cut-over the rows are deleted permanently; first check that the environment is active at the \
                other installation. Devices that still connect, with a valid token or to log in, are redirected there, \
                unless --remove-redirect is given: then nothing of the environment is left, and it can be moved back \
                later. It cannot be exported again. The command can be interrupted and run again.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Flag(help: "After a cut-over: delete the redirect record too.") var removeRedirect = false
        @Flag(help: "Skip the confirmation prompt.") var yes = false
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            let audit = Administrator.commandLine.audit(.environmentDiscarded, name, in: nil)
            guard try MoveStore.find(name, on: &connection)?.state == .left else {
                try MoveRemoval.discard(name, also: audit, on: &connection)
                return print("the copy of \(name) is deleted")
            }
            if !yes {
                let prompt = "Delete all rows of \(name) here permanently? Type its name:"
                try Terminal.confirm(prompt, answer: name, refusal: "nothing was deleted")
            }
            let count = try MoveRemoval.discardSource(
                name, keepingRedirect: !removeRedirect, also: audit, on: &connection)
            print("\(name) is deleted here: \(count) rows")
        }
    }

    /// `fieldpost environment moves`: lists moves and their next steps.
    struct Moves: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the moves from and to this installation and the next steps.",
            discussion: """
                To print a lost receipt, repeat export and import. To print a lost activation token, repeat cut-over.
                """)
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let moves = try MoveListing.all(on: &connection)
            let table = Table(["ENVIRONMENT", "STATE", "SINCE", "NEXT"], moves, empty: "no moves") {
                [$0.environment, $0.state.rawValue, "\($0.since)", Self.next($0)]
            }
            try output.show(moves, table)
        }

        private static func next(_ move: MoveListing) -> String {
            switch move.state {
            case .copying: "export is copying, or was interrupted: export again, or roll-back"
            case .held: "write-blocked: cut-over with import's receipt; or export again, or roll-back"
            case .left where move.discardedAt != nil: "cut over\(to(move)); discard has started or finished"
            case .left: "cut over\(to(move)): discard, once it is active there; cut-over prints its token again"
            case .arriving:
                "import is reading, or was interrupted: at the source, export \(move.environment)"
                    + (move.resume.map { " --resume \($0)" } ?? "") + "; or discard"
            case .whole: "cut-over at the source, then activate; import prints its receipt again; or discard"
            case .begun: "nothing: it is active here"
            }
        }

        private static func to(_ move: MoveListing) -> String { move.movedTo.map { " to \($0)" } ?? "" }
    }
}

/// The lines of a move's stream, read one after the other.
private final class StreamLines {
    private var lines: LineReader

    init(_ handle: FileHandle) { lines = LineReader(handle, bytesMax: EnvironmentImport.lineBytesMax) }

    /// Returns the next line, with its end if it has one.
    func next() throws -> [UInt8]? {
        guard let line = try lines.next() else { return nil }
        guard let bytes = line.bytes else {
            throw CommandFailure("line \(line.number) is longer than \(EnvironmentImport.lineBytesMax) bytes")
        }
        return line.hasEnd ? bytes + [UInt8(ascii: "\n")] : bytes
    }
}
