import ArgumentParser
import Audit
import CommandLineSupport
import FoundationEssentials
import Model
import Postgres
import TenantMigration
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment erase`: removes a person's data.
    struct Erase: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Erase a person with all data, and report what is kept.",
            discussion: """
                First block the account at the identity provider, revoke its tokens with: fieldpost environment \
                revoke, and wait until its access tokens have expired, usually an hour. Otherwise a device or the next \
                login registers the person again.

                The report lists everything that was deleted, changed or kept. The person's records in the back end \
                are not called or changed; --json lists their ids. Records of the audit log keep their action and \
                time, under a pseudonym.

                The command can be interrupted and run again. Services may have written a row in the meantime: run it \
                again after an hour, until it changes nothing.
                """)
        @Argument(help: "The environment.") var name: String
        @Argument(help: "E-mail address of the person.") var email: String
        @Flag(help: "Report what would be erased without changing anything.") var dryRun = false
        @Flag(help: "Skip the confirmation prompt.") var yes = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            guard let address = EmailAddress(email) else { throw ValidationError("\(email) is not an e-mail address") }
            var limits = Limits()
            // Some tables are scanned whole.
            limits.statementMax = .seconds(600)
            var connection = try database.connect(limits)
            let environment = try EnvironmentStore.find(name, on: &connection)
            // Deletions of a write-blocked environment have no effect.
            if let state = try MoveStore.find(name, on: &connection)?.state, state != .begun {
                throw CommandFailure("\(name) is being moved to or from another installation: erase the person there")
            }
            let pseudonym = "\(ErasureSubject.pseudonymPrefix)\(UUID().uuidString.lowercased().suffix(12))"
            let subject = try ErasureSubject.load(address, in: environment, pseudonym: pseudonym, on: &connection)
            if subject.number == nil {
                printError("\(address) is not registered: erasing rows with the address, and of people erased before\n")
            }
            if dryRun { return try show(PersonErasure.preview(subject, on: &connection)) }
            if !yes {
                let prompt = "Erase \(address) permanently? Type the address:"
                try Terminal.confirm(prompt, answer: address.description, refusal: "nothing was erased")
            }
            let audit = Administrator.commandLine.audit(.personErased, pseudonym, in: environment)
            try show(PersonErasure.run(subject, also: audit, on: &connection))
        }

        private func show(_ lines: [ErasureLine]) throws {
            let table = Table(["ACTION", .right("COUNT"), "CONTENT", "WHERE"], lines) { line in
                [line.action.rawValue, line.count.map { "\($0)" } ?? "", line.content, line.detail]
            }
            try output.show(lines, table)
        }
    }

    /// `fieldpost environment remove`: removes a tenant's data.
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an environment with all its data.",
            discussion: """
                Write-blocks the environment and deletes its rows from all tables, including its audit log. Its \
                records in the back end are not called or changed. Its devices lose access.

                The command can be interrupted and run again.
                """)
        @Argument(help: "The environment.") var name: String
        @Flag(help: "Count the rows without removing anything.") var dryRun = false
        @Flag(help: "Skip the confirmation prompt.") var yes = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect(MoveStore.limits)
            let environment = try EnvironmentStore.find(name, on: &connection)
            let counts = try MoveRemoval.counts(in: environment, on: &connection).filter { $0.count > 0 }
            if !dryRun {
                if !yes {
                    let prompt = "Remove \(name) with all its data permanently? Type its name:"
                    try Terminal.confirm(prompt, answer: name, refusal: "nothing was removed")
                }
                let audit = Administrator.commandLine.audit(.environmentErased, name, in: nil)
                _ = try MoveRemoval.remove(name, also: audit, on: &connection)
            }
            let lines =
                counts.map { ErasureLine(action: .deleted, content: $0.table, count: $0.count, detail: "") }
                + [
                    ErasureLine(
                        action: .kept, content: "records in the back end", count: nil, detail: "erase them there")
                ]
                + ErasureLine.outside
            let table = Table(["ACTION", .right("COUNT"), "CONTENT", "WHERE"], lines) { line in
                [line.action.rawValue, line.count.map { "\($0)" } ?? "", line.content, line.detail]
            }
            try output.show(lines, table)
        }
    }
}
