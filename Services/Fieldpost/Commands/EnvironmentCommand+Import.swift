import ArgumentParser
import Environments
import Foundation
import Moving
import Postgres

extension EnvironmentCommand {
    /// `fieldpost environment import`: the receiving end of a move.
    struct Import: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Read an environment that another installation exports.",
            discussion: """
                What was read stays when the stream is cut, or refused because it was changed on its way; the status \
                is 1 then, and the last line says with which --resume the other installation goes on. When all of it \
                is here it prints a receipt, for: fieldpost environment leave. Run again then, it prints the receipt \
                again. Nobody works with the environment before: fieldpost environment begin.
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
                    "\(stopped.reason). What came before it is kept. Go on with: fieldpost environment export"
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
