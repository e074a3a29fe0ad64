import Access
import ArgumentParser
import Audit
import BackendConnections
import Model
import ObjectStore
import Postgres
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment unbind`: lets people come in with another account of the identity provider.
    struct Unbind: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let people come in with another account of the identity provider.",
            discussion: """
                A person is bound to the account of the first login. When that account was made anew, or the
                environment has another provider, the next login with the verified address binds it again: the person
                keeps realm, hours and role. It is for the same person only. An address that now belongs to somebody
                else must not be unbound: give them another one.

                The account that was bound gets in no more within a minute, unless it logs in first; streams it has
                open end with their token, which no device renews.
                """)
        @Argument(help: "The environment.") var name: String
        @Argument(help: "E-mail addresses.") var emails: [String] = []
        @Flag(help: "Everybody.") var all = false
        @OptionGroup var database: DatabaseOptions

        private static let pageCountMax: Int64 = 500

        func validate() throws {
            guard emails.isEmpty == all else { throw ValidationError("give e-mail addresses or --all") }
        }

        func run() async throws {
            var connection = try database.connect()
            guard let environment = try EnvironmentStore.load(name, on: &connection)?.id else {
                throw CommandFailure("there is no environment \(name)")
            }
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
