import ArgumentParser
import Audit
import Foundation
import Postgres
import TenantMigration

extension EnvironmentCommand {
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
        @Argument(help: "The environment.") var name: String
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
            try confirm()
            let count = try MoveRemoval.discardSource(
                name, keepingRedirect: !removeRedirect, also: audit, on: &connection)
            print("\(name) is deleted here: \(count) rows")
        }

        private func confirm() throws {
            if yes { return }
            guard isatty(STDIN_FILENO) == 1 else {
                throw ValidationError("standard input is not a terminal: give --yes")
            }
            print("Delete all rows of \(name) here permanently? Type its name: ", terminator: "")
            fflush(nil)
            guard readLine() == name else { throw CommandFailure("nothing was deleted") }
        }
    }
}
