import Access
import ArgumentParser
import Audit
import BackendConnections
import Model
import ObjectStore
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment unbind`: lets people log in with another account of the identity provider.
    struct Unbind: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Unbind people from their identity provider accounts.",
            discussion: """
                A person is bound to the account of their first login. If that account was recreated, or the \
                environment has another provider, unbind it: the next login with the verified address binds the new \
                account, and the person keeps realm, hours and role. Use it for the same person only. If an address \
                now belongs to another person, give that person another address.

                The unbound account loses access within a minute, unless it logs in first; its open streams end with \
                their token, which is not renewed.
                """)
        @Argument(help: "The environment.") var name: String
        @Argument(help: "Unbind these e-mail addresses.") var emails: [String] = []
        @Flag(help: "Unbind all people.") var all = false
        @OptionGroup var database: DatabaseOptions

        private static let pageCountMax: Int64 = 500

        func validate() throws {
            guard emails.isEmpty == all else { throw ValidationError("give e-mail addresses or --all") }
        }

        func run() async throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(name, on: &connection)
            let people = all ? nil : try EnvironmentStore.people(emails, in: environment, on: &connection)
            let hasLogins = try OwnDefectLogin.areKept(on: &connection)
            var (last, count) = (Int32(0), 0)
            while true {
                let bound = try PersonBinding.bound(
                    after: last, of: people, countMax: Self.pageCountMax, in: environment, on: &connection)
                guard let newest = bound.last else { break }
                last = newest.id
                let logins = hasLogins ? [OwnDefectLogin.forget(bound.map(\.id), in: environment)] : []
                try connection.run(
                    PersonBinding.unbind(bound.map(\.id), in: environment) + logins + [
                        Administrator.commandLine.audit(.unbound, bound.map(\.email), in: environment)
                    ])
                if hasLogins { try DefectAccounts.recheck(bound.map(\.email), in: environment, on: &connection) }
                count += bound.count
            }
            print("\(count) \(count == 1 ? "person" : "people") unbound")
        }
    }
}
