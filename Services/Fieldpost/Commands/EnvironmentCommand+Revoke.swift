import ArgumentParser
import FoundationEssentials
import HTTP
import Identity
import Model
import Postgres
import Secrets

extension EnvironmentCommand {
    /// `fieldpost environment revoke`: has the provider and Fieldpost forget people's refresh tokens.
    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke people's refresh tokens, at the identity provider and here.",
            discussion: "What the provider does not confirm stays, and is told; the command ends with status 1 then.")
        @Argument(help: "The environment.") var name: String
        @Argument(help: "E-mail addresses.") var emails: [String] = []
        @Flag(help: "Everybody's.") var all = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        /// Tokens revoked by one run of the command.
        private static let countMax = 1_000

        struct Revoked: Encodable {
            let email: String
            let isRevoked: Bool
            let detail: String
        }

        func validate() throws {
            guard emails.isEmpty == all else { throw ValidationError("give e-mail addresses or --all") }
        }

        func run() async throws {
            var connection = try database.connect()
            guard let stored = try EnvironmentStore.load(name, on: &connection), let id = stored.id,
                let clientID = stored.clientID, let secret = stored.clientSecret
            else { throw CommandFailure("there is no environment \(name) with a client at its identity provider") }
            let secrets = try SecretOptions.box()
            let application = ProviderClient(
                id: clientID, secret: try secrets.openText(secret.bytes, at: OAuthClient.secretPlace(id)))
            let client = Client()
            defer { client.shutDown() }
            let provider = OpenIDProvider(client: client)
            let metadata = try await provider.discover(stored.issuer, at: stored.discoveryURL)
            let rows = try connection.run(
                """
                SELECT t.id, t.person_id, t.token, p.email FROM onboarding.refresh_token t
                JOIN access.person p ON p.environment_id = t.environment_id AND p.id = t.person_id
                WHERE t.environment_id = \(id.rawValue) AND t.revoked_at IS NULL
                    AND (\(all) OR p.email = ANY (\(emails.map(EmailAddress.lowered))))
                ORDER BY t.id LIMIT \(Int64(Self.countMax))
                """)
            var results: [Revoked] = []
            for row in rows {
                let (number, email): (Int64, String) = (try row.value(0), try row.value(3))
                do {
                    let place = RefreshTokens.secretPlace(id, person: try row.value(1))
                    let token = try secrets.openText(try row.value(2, as: Bytea.self).bytes, at: place)
                    try await provider.revoke(token, as: application, at: metadata)
                    try connection.run(
                        """
                        UPDATE onboarding.refresh_token SET revoked_at = now(), token = ''
                        WHERE environment_id = \(id.rawValue) AND id = \(number)
                        """)
                    results.append(Revoked(email: email, isRevoked: true, detail: "revoked"))
                } catch {
                    results.append(Revoked(email: email, isRevoked: false, detail: "\(error)"))
                }
            }
            var table = Table([("PERSON", .left), ("STATE", .left)], empty: "nothing to revoke")
            for result in results { table.add([result.email, result.detail]) }
            try output.show(results, table)
            if results.contains(where: { !$0.isRevoked }) { throw ExitCode(1) }
        }
    }
}
