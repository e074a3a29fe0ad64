import ArgumentParser
import Audit
import Foundation
import Postgres
import TenantMigration

extension EnvironmentCommand {
    /// `fieldpost environment import`: the receiving end of a move.
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read an environment that another installation exports.",
            discussion: """
                If the stream is cut, or refused because it was changed in transit, the rows before that are kept: \
                the status is 1, and the last line has the --resume for the other installation. When the stream is \
                complete, this command prints a receipt for: fieldpost environment leave. Run again, it prints the \
                receipt again. The environment is not used here before: fieldpost environment begin.
                """)
        @Argument(help: "The file; standard input without it.") var file: String?
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
            let arriving = ArrivingLines(handle)
            var connection = try database.connect(MoveStore.limits)
            var moving = EnvironmentImport(transfer: try options.transfer(), next: arriving.next)
            do {
                let receipt = try moving.run(on: &connection)
                FileHandle.standardError.write(Data("\(moving.name): \(moving.rowCount) rows\n".utf8))
                print(receipt)
            } catch let stopped as EnvironmentImport.Stopped {
                guard !moving.name.isEmpty else {
                    throw CommandFailure(
                        "nothing arrived: \(stopped.reason). fieldpost environment moves shows where export resumes")
                }
                throw CommandFailure(
                    "\(stopped.reason). The rows before it are kept. Resume with: fieldpost environment export"
                        + (stopped.resume.map { " --resume \($0.text)" } ?? ""))
            }
        }
    }

    /// `fieldpost environment begin`: the new place works with it.
    struct Begin: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Begin to work with an environment that has left another installation.",
            discussion: "Its devices come in, and everything of it that services react to is published.")
        @Argument(help: "The environment.") var name: String
        @Argument(help: "What environment leave printed at the other installation.") var permission: String
        @OptionGroup var options: MoveOptions
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            try MoveBeginning.begin(
                name, permission: permission, secrets: try SecretOptions.box(), transfer: try options.transfer(),
                also: { Administrator.commandLine.audit(.environmentBegun, name, in: $0) }, on: &connection)
            print("\(name) works here")
        }
    }
}

/// The lines of a move's stream, read one after the other.
private final class ArrivingLines {
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
