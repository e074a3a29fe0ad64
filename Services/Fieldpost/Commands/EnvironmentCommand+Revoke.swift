import Access
import ArgumentParser
import Audit
import CommandLineSupport
import FoundationEssentials
import HTTPClient
import Identity
import Model
import ObjectStore
import Postgres
import Secrets
import Tenants

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
            let selection = RefreshTokenStore.Selection(people: people, devices: devices)
            // First, so that no device's renewal puts another token in the place of one that is revoked.
            try connection.transaction { transaction in
                let emails = try RefreshTokenStore.shutOut(selection, in: id, on: &transaction)
                try transaction.run([Administrator.commandLine.audit(.deviceRevoked, emails, in: id)])
            }
            let client = Client()
            defer { client.shutDown() }
            var revoking: Revoking?
            if !forget { revoking = try await Revoking.prepare(stored, id, OpenIDProvider(client: client)) }
            var results: [Revoked] = []
            var last: Int64 = 0
            while true {
                let tokens = try RefreshTokenStore.load(after: last, of: selection, in: id, on: &connection)
                guard let newest = tokens.last else { break }
                last = newest.number
                for token in tokens {
                    let problem = await revoking?.problem(revoking: token)
                    if problem == nil {
                        try connection.run([
                            RefreshTokenStore.remove(token, in: id),
                            Administrator.commandLine.audit(
                                forget ? .tokenForgotten : .tokenRevoked, token.email, in: id),
                        ])
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
            id: clientID, secret: try secrets.openText(secret.bytes, at: SecretContext.clientSecret(id)))
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
            let place = SecretContext.refreshToken(environment, person: token.person)
            let text = try secrets.openText(token.sealed.bytes, at: place)
            try await provider.revoke(text, as: application, at: metadata)
            return nil
        } catch {
            return "\(error)"
        }
    }
}

/// What became of a token.
private struct Revoked: Encodable {
    let email: String
    let isRemoved: Bool
    let detail: String
}
