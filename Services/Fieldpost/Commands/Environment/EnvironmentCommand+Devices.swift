import Access
import ArgumentParser
import Audit
import BackendConnections
import CommandLineSupport
import FoundationEssentials
import HTTPClient
import Identity
import Model
import Postgres
import Secrets
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment devices`: lists device credentials.
    struct Devices: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the devices that renew their tokens without a login.",
            discussion: "Revoke one with: environment revoke NAME EMAIL --device NUMBER.")
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Argument(help: "Limit to these e-mail addresses.") var emails: [String] = []
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(name, on: &connection)
            let people =
                emails.isEmpty ? nil : try EnvironmentStore.people(emails, in: environment, on: &connection)
            let devices = try RefreshTokenStore.devices(of: people, in: environment, on: &connection)
            let table = Table([.right("NUMBER"), "PERSON", "LAST USED", "DEVICE"], devices, empty: "no device") {
                [String($0.number), $0.email, $0.usedAt, $0.device]
            }
            try output.show(devices, table)
        }
    }

    /// `fieldpost environment revoke`: revokes people's refresh tokens and device credentials.
    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke people's devices and refresh tokens.",
            discussion: """
                Devices lose access immediately: their tokens are not renewed, and expire. Refresh tokens are revoked \
                at the identity provider and here. A token whose revocation the provider does not confirm is kept and \
                reported; the status is 1 then. If the provider cannot revoke or no longer exists, --local-only \
                removes the tokens here: a copy of a token remains valid at the provider.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @Argument(help: "Revoke for these e-mail addresses.") var emails: [String] = []
        @Flag(help: "Revoke for all people.") var all = false
        @Option(
            name: .customLong("device"), help: "Limit to this device (numbers: environment devices); may be repeated.")
        var devices: [Int64] = []
        @Flag(help: "Remove the tokens here without calling the provider.") var localOnly = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard emails.isEmpty == all else { throw ValidationError("give e-mail addresses or --all") }
        }

        func run() async throws {
            var connection = try database.connect()
            let (stored, id) = try EnvironmentStore.existing(name, on: &connection)
            let people = all ? nil : try EnvironmentStore.people(emails, in: id, on: &connection)
            let selection = RefreshTokenStore.Selection(people: people, devices: devices)
            // First, so that no device's renewal replaces a token that is being revoked.
            try connection.transaction { transaction in
                let emails = try RefreshTokenStore.revokeDevices(selection, in: id, on: &transaction)
                try transaction.run([Administrator.commandLine.audit(.deviceRevoked, emails, in: id)])
            }
            let client = Client()
            defer { client.shutDown() }
            var revoking: TokenRevocation?
            if !localOnly { revoking = try await TokenRevocation.prepare(stored, id, OpenIDProvider(client: client)) }
            var results: [RevocationResult] = []
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
                                localOnly ? .tokenDiscarded : .tokenRevoked, token.email, in: id),
                        ])
                    }
                    let done = localOnly ? "removed here only" : "revoked"
                    results.append(.init(email: token.email, isRemoved: problem == nil, detail: problem ?? done))
                }
            }
            try output.show(
                results, Table(["PERSON", "STATE"], results, empty: "nothing to revoke") { [$0.email, $0.detail] })
            if results.contains(where: { !$0.isRemoved }) { throw ExitCode(1) }
        }
    }

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
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
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

/// Revokes tokens at an environment's identity provider.
private struct TokenRevocation {
    let environment: EnvironmentID
    let provider: OpenIDProvider
    let metadata: ProviderMetadata
    let application: ProviderClient
    let secrets: SecretBox

    static func prepare(
        _ stored: StoredEnvironment, _ id: EnvironmentID, _ provider: OpenIDProvider
    ) async throws -> TokenRevocation {
        guard let clientID = stored.clientID, let secret = stored.clientSecret else {
            throw CommandFailure("the environment \(stored.name) has no client at its identity provider")
        }
        let secrets = try SecretOptions.box()
        let application = ProviderClient(
            id: clientID, secret: try secrets.openText(secret.bytes, at: SecretContext.clientSecret(id)))
        let metadata = try await provider.discover(stored.issuer, at: stored.discoveryURL)
        guard metadata.revocationEndpoint != nil else {
            throw CommandFailure(
                "\(stored.issuer) has no revocation endpoint: devices lost access, but their refresh tokens remain "
                    + "valid there (--local-only removes them here)")
        }
        return TokenRevocation(
            environment: id, provider: provider, metadata: metadata, application: application, secrets: secrets)
    }

    /// - Returns: The reason of a failure; `nil` if the provider confirmed.
    func problem(revoking token: RefreshTokenStore.Token) async -> String? {
        do {
            let context = SecretContext.refreshToken(environment, person: token.person)
            let text = try secrets.openText(token.sealed.bytes, at: context)
            try await provider.revoke(text, as: application, at: metadata)
            return nil
        } catch {
            return "\(error)"
        }
    }
}

/// The result of revoking one token.
private struct RevocationResult: Encodable {
    let email: String
    let isRemoved: Bool
    let detail: String
}
