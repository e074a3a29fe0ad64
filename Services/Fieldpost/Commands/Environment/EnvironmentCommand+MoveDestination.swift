import ArgumentParser
import Audit
import Foundation
import Postgres
import TenantMigration

extension EnvironmentCommand {
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
                FileHandle.standardError.write(Data("\(moving.name): \(moving.rowCount) rows\n".utf8))
                print(receipt)
            } catch let interruption as EnvironmentImport.Interruption {
                guard !moving.name.isEmpty else {
                    throw CommandFailure(
                        "nothing arrived: \(interruption.reason). See where export resumes with: fieldpost environment "
                            + "moves"
                    )
                }
                throw CommandFailure(
                    "\(interruption.reason). The rows before it are kept. Resume with: fieldpost environment export"
                        + (interruption.resume.map { " --resume \($0.text)" } ?? ""))
            }
        }
    }

    /// `fieldpost environment activate`: activates the environment at the destination.
    struct Activate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Activate an environment after its cut-over.",
            discussion: "Devices can connect, and all published kinds are republished.")
        @Argument(help: "The environment.") var name: String
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
