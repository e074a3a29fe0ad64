import ArgumentParser
import Environments
import Model
import Postgres
import Realms

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
            var (last, count) = (Int32(0), 0)
            while true {
                let bound = try connection.run(
                    """
                    SELECT id, email FROM access.person
                    WHERE environment_id = \(environment.rawValue) AND id > \(last) AND subject IS NOT NULL
                        AND (\(people == nil) OR id = ANY (\(people ?? [])))
                    ORDER BY id LIMIT \(Self.pageCountMax)
                    """)
                guard bound.count > 0 else { break }
                last = try bound[bound.count - 1].value(0)
                try unbind(try bound.map { (try $0.value(0), try $0.value(1)) }, in: environment, on: &connection)
                count += bound.count
            }
            print("\(count) \(count == 1 ? "person" : "people") unbound")
        }

        private func unbind(
            _ people: [(id: Int32, email: String)], in environment: EnvironmentID, on connection: inout Connection
        ) throws {
            try connection.run([
                """
                UPDATE access.person SET issuer = NULL, subject = NULL, bound_at = NULL
                WHERE environment_id = \(environment.rawValue) AND id = ANY (\(people.map(\.id)))
                """,
                // Also when the same account is bound again.
                """
                UPDATE onboarding.refresh_token SET newest = NULL, former = NULL
                WHERE environment_id = \(environment.rawValue) AND person_id = ANY (\(people.map(\.id)))
                    AND newest IS NOT NULL
                """,
                Administrator.audit(.unbound, people.map(\.email), in: environment),
            ])
        }
    }
}
