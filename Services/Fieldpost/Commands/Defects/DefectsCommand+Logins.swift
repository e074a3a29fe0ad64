import Access
import ArgumentParser
import Audit
import BackendConnections
import CommandLineSupport
import Essentials
import FoundationEssentials
import Model
import Postgres
import Tenants

extension DefectsCommand {
    /// `fieldpost environment defects logins`: maps people to logins of the tracker.
    struct Logins: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List or replace the mapping of people to tracker logins.",
            discussion: """
                FILE is a JSON object of login names by e-mail address: {"ana@example.com": "ana"}. It replaces the \
                stored mapping: people who are not in it get no more notices of defects. People are notified about \
                defects of their login, so logins are never guessed from addresses. Without an account, people's own \
                logins are used, and the mapping is not needed.
                """)
        @Argument(help: "The environment.") var name: String
        @Option(help: ArgumentHelp("Replace the mapping by this file.", valueName: "file")) var file: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        private struct Row: Encodable {
            let email, login: String
        }

        func run() throws {
            var connection = try database.connect(EnvironmentStore.limits)
            if file != nil { try EnvironmentStore.lock(name, on: &connection) }
            let id = try DefectsCommand.environment(name, on: &connection)
            if let file {
                let logins = try Self.read(file)
                try connection.run(
                    DefectLogins.replace(logins, in: id) + [
                        Administrator.commandLine.audit(
                            .environmentChanged, name, in: id, detail: ["changed": "logins of defects"])
                    ])
            }
            let rows = try connection.run(DefectLogins.people(in: id)).decode(String.self, String.self).map {
                Row(email: $1, login: $0)
            }
            var table = Table(
                [("PERSON", .left), ("LOGIN", .left)],
                empty: "no logins; set them with: fieldpost environment defects logins \(name) --file FILE")
            for row in rows { table.add([row.email, row.login]) }
            try output.show(rows, table)
        }

        /// Reads login names by e-mail address.
        private static func read(_ file: String) throws -> [String: String] {
            let data = try TextFile.read(file)
            let given: [String: String]
            do {
                try JSONCheck.checkKeys(ofFile: Array(data))
                given = try JSONDecoder().decode([String: String].self, from: data)
            } catch {
                throw CommandFailure("\(file) is not a JSON object of login names by e-mail address: \(error)")
            }
            var logins: [String: String] = [:]
            var people: [String: String] = [:]
            for (text, login) in given.sorted(by: { $0.key < $1.key }) {
                guard let email = EmailAddress(text)?.description else {
                    throw CommandFailure("\(file): '\(text)' is not an e-mail address")
                }
                guard !login.isEmpty, !login.contains(where: \.isWhitespace) else {
                    throw CommandFailure("\(file): '\(login)' of \(email) is not a login name")
                }
                if let other = people.updateValue(email, forKey: login) {
                    throw CommandFailure("\(file): '\(login)' belongs to both \(other) and \(email)")
                }
                guard logins.updateValue(login, forKey: email) == nil else {
                    throw CommandFailure("\(file): \(email) occurs twice")
                }
            }
            return logins
        }
    }
}
