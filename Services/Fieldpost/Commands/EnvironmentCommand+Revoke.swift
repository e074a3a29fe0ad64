import ArgumentParser
import Environments
import FoundationEssentials
import HTTP
import Identity
import Model
import Postgres
import Realms

extension EnvironmentCommand {
    /// `fieldpost environment revoke`: has the provider and Fieldpost forget people's refresh tokens.
    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shut people's devices out, and revoke their refresh tokens, at the identity provider and here.",
            discussion: """
                The devices are shut out at once: their tokens are renewed no more, and end within their time.
                What the provider does not confirm stays, and is told; the command ends with status 1 then. Where the
                provider cannot revoke, or is gone for good, --forget removes the tokens here: whoever has a copy of
                one can use it still.
                """)
        @Argument(help: "The environment.") var name: String
        @Argument(help: "E-mail addresses.") var emails: [String] = []
        @Flag(help: "Everybody's.") var all = false
        @Option(
            name: .customLong("device"),
            help: "Only that of their devices (environment devices numbers them); may be repeated.")
        var devices: [Int64] = []
        @Flag(help: "Remove them here only; the provider is not asked.") var forget = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard emails.isEmpty == all else { throw ValidationError("give e-mail addresses or --all") }
        }

        func run() async throws {
            var connection = try database.connect()
            guard let stored = try EnvironmentStore.load(name, on: &connection), let id = stored.id else {
                throw CommandFailure("there is no environment \(name)")
            }
            let people = all ? nil : try EnvironmentStore.people(emails, in: id, on: &connection)
            // First, so that no device's renewal puts another token in the place of one that is revoked.
            try RefreshTokenStore.shutOut(people, devices: devices, in: id, on: &connection)
            let client = Client()
            defer { client.shutDown() }
            var revoking: Revoking?
            if !forget { revoking = try await Revoking.prepare(stored, id, OpenIDProvider(client: client)) }
            var results: [RefreshTokenStore.Revoked] = []
            var last: Int64 = 0
            while true {
                let tokens = try RefreshTokenStore.load(
                    after: last, of: people, devices: devices, in: id, on: &connection)
                guard let newest = tokens.last else { break }
                last = newest.number
                for token in tokens {
                    let problem = await revoking?.problem(revoking: token)
                    if problem == nil {
                        try RefreshTokenStore.remove(token, isRevoked: !forget, in: id, on: &connection)
                    }
                    let done = forget ? "forgotten here" : "revoked"
                    results.append(.init(email: token.email, isRemoved: problem == nil, detail: problem ?? done))
                }
            }
            var table = Table([("PERSON", .left), ("STATE", .left)], empty: "nothing to revoke")
            for result in results { table.add([result.email, result.detail]) }
            try output.show(results, table)
            if results.contains(where: { !$0.isRemoved }) { throw ExitCode(1) }
        }
    }
}

/// Has an environment's provider revoke tokens.
private struct Revoking {
    let environment: EnvironmentID
    let provider: OpenIDProvider
    let metadata: ProviderMetadata
    let application: ProviderClient
    let secrets: SecretBox

    static func prepare(
        _ stored: StoredEnvironment, _ id: EnvironmentID, _ provider: OpenIDProvider
    ) async throws -> Revoking {
        guard let clientID = stored.clientID, let secret = stored.clientSecret else {
            throw CommandFailure("the environment \(stored.name) has no client at its identity provider")
        }
        let secrets = try SecretOptions.box()
        let application = ProviderClient(
            id: clientID, secret: try secrets.openText(secret.bytes, at: OAuthClient.secretPlace(id)))
        let metadata = try await provider.discover(stored.issuer, at: stored.discoveryURL)
        guard metadata.revocationEndpoint != nil else {
            throw CommandFailure(
                "\(stored.issuer) has no revocation endpoint: devices are shut out, but their refresh tokens stay good "
                    + "there (--forget removes them here)")
        }
        return Revoking(
            environment: id, provider: provider, metadata: metadata, application: application, secrets: secrets)
    }

    /// - Returns: `nil` when the provider confirmed it.
    func problem(revoking token: RefreshTokenStore.Token) async -> String? {
        do {
            let place = RefreshTokens.secretPlace(environment, person: token.person)
            let text = try secrets.openText(token.sealed.bytes, at: place)
            try await provider.revoke(text, as: application, at: metadata)
            return nil
        } catch {
            return "\(error)"
        }
    }
}

/// The SQL of `onboarding.refresh_token`, as the command line needs it.
private enum RefreshTokenStore {
    struct Token {
        let number: Int64
        let person: Int32
        let sealed: Bytea
        let email: String
    }

    struct Revoked: Encodable {
        let email: String
        let isRemoved: Bool
        let detail: String
    }

    static let pageCountMax = 500

    /// The next tokens that are still there, in the order of their numbers.
    static func load(
        after last: Int64, of people: [Int32]?, devices: [Int64], in environment: EnvironmentID,
        on connection: inout Connection
    ) throws -> [Token] {
        try connection.run(
            """
            SELECT t.id, t.person_id, t.token, p.email FROM onboarding.refresh_token t
            JOIN access.person p ON p.environment_id = t.environment_id AND p.id = t.person_id
            WHERE t.environment_id = \(environment.rawValue) AND t.revoked_at IS NULL AND t.id > \(last)
                AND (\(people == nil) OR t.person_id = ANY (\(people ?? [])))
                AND (\(devices.isEmpty) OR t.id = ANY (\(devices)))
            ORDER BY t.id LIMIT \(Int64(pageCountMax))
            """
        ).map { row in
            Token(
                number: try row.value(0), person: try row.value(1), sealed: try row.value(2), email: try row.value(3))
        }
    }

    /// Has no device renew its token any more, whatever the provider answers.
    static func shutOut(
        _ people: [Int32]?, devices: [Int64], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        try connection.transaction { transaction in
            let rows = try transaction.run(
                """
                UPDATE onboarding.refresh_token t SET newest = NULL, former = NULL FROM access.person p
                WHERE t.environment_id = \(environment.rawValue) AND t.newest IS NOT NULL
                    AND p.environment_id = t.environment_id AND p.id = t.person_id
                    AND (\(people == nil) OR t.person_id = ANY (\(people ?? [])))
                    AND (\(devices.isEmpty) OR t.id = ANY (\(devices)))
                RETURNING p.email
                """)
            let emails = try rows.map { try $0.value(0, as: String.self) }
            try transaction.run([Administrator.audit(.deviceRevoked, emails, in: environment)])
        }
    }

    static func remove(
        _ token: Token, isRevoked: Bool, in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        try connection.run([
            """
            UPDATE onboarding.refresh_token SET revoked_at = now(), token = ''
            WHERE environment_id = \(environment.rawValue) AND id = \(token.number)
            """,
            Administrator.audit(isRevoked ? .tokenRevoked : .tokenForgotten, token.email, in: environment),
        ])
    }
}
