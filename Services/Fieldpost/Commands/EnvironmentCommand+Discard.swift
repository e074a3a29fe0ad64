import ArgumentParser
import Audit
import Foundation
import Postgres
import TenantMigration

extension EnvironmentCommand {
    /// `fieldpost environment discard`: what arrived, or what stays where it has left, is not needed.
    struct Discard: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove what arrived of an environment that has not begun, or what stays of one that left.",
            discussion: """
                Of one that has left, its rows are removed for good, and nothing tells whether it works at the other \
                installation: look there before. Devices that still come, with a token that \
                is good or to log in, are told on where it is, unless --signpost-too is given: then nothing of it \
                stays, and it may come back. It cannot be exported again. It may be stopped, and begun \
                again.
                """)
        @Argument(help: "The environment.") var name: String
        @Flag(help: "Of one that has left: also what tells devices where it is.") var signpostToo = false
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            let audit = Administrator.commandLine.audit(.environmentDiscarded, name, in: nil)
            guard try MoveStore.find(name, on: &connection)?.state == .left else {
                try MoveRemoval.discard(name, also: audit, on: &connection)
                return print("what arrived of \(name) is removed")
            }
            try confirm()
            let count = try MoveRemoval.discardLeft(
                name, keepingSignpost: !signpostToo, also: audit, on: &connection)
            print("what stayed of \(name) is removed: \(count) rows")
        }

        private func confirm() throws {
            if yes { return }
            guard isatty(STDIN_FILENO) == 1 else { throw ValidationError("nobody can be asked: give --yes") }
            print("Remove all that stayed of \(name) here, for good? Type its name: ", terminator: "")
            fflush(nil)
            guard readLine() == name else { throw CommandFailure("nothing was removed") }
        }
    }
}
