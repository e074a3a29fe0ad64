import Access
import ArgumentParser
import Audit
import CommandLineSupport
import Crypto
import FoundationEssentials
import Model
import Postgres
import Tenants

/// `fieldpost environment integration`: programs with access to every realm of an environment.
struct IntegrationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "integration", abstract: "Manage programs with access to all realms of an environment.",
        subcommands: [Add.self, List.self, Remove.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Grant access with a key or with the provider's tokens.",
            discussion: """
                Without --client-id a key is created and printed once: the integration sends it as its bearer token. \
                With --client-id, tokens of the environment's identity provider (client credentials) grant access. A \
                token must be issued for the environment's audience, without an e-mail address or login (nonce, \
                auth_time, scope openid). Its azp, client_id or appid must be ID, if present, and its sub must be \
                SUBJECT (default: ID). Keycloak's sub is the id of the client's service account user; Entra's is the \
                object id of the service principal.
                """)
        @Argument(help: "Name: lower-case letters, digits and hyphens.") var name: String
        @Option(help: ArgumentHelp("Client id of the integration at the identity provider.", valueName: "id"))
        var clientId: String?
        @Option(help: ArgumentHelp("Claim sub of the client's tokens, if it is not ID.", valueName: "subject"))
        var subject: String?
        @Option(help: "Environment; required if there are several.", completion: Completion.environments)
        var environment: String?
        @OptionGroup var database: DatabaseOptions

        func validate() throws {
            try validateName(name)
            guard [clientId, subject].allSatisfy({ $0.map { (1...255).contains($0.utf8.count) } ?? true }) else {
                throw ValidationError("--client-id and --subject must have from 1 to 255 bytes")
            }
            guard clientId != nil || subject == nil else { throw ValidationError("--subject needs --client-id") }
        }

        func run() throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            let key = clientId == nil ? IntegrationKey.make() : nil
            let hash = key.map { Bytea(Array(SHA256.hash(data: Array($0.utf8)))) }
            if let clientId { try reject(loginClient: clientId, of: environment, on: &connection) }
            let detail = ["clientId": clientId, "subject": subject].compactMapValues(\.self)
            let isAdded = try IntegrationStore.add(
                name, keyHash: hash, clientID: clientId, subject: subject, in: environment,
                record: Administrator.commandLine.audit(
                    .integrationAdded, name, in: environment, detail: detail, decision: 0),
                on: &connection)
            guard isAdded else {
                throw CommandFailure("an integration with this name or client id exists; remove it first")
            }
            print(key ?? "\(name) has access with tokens of the client \(clientId ?? "")")
        }

        /// Rejects the client of people's logins: their tokens are issued to it.
        private func reject(
            loginClient client: String, of environment: EnvironmentID, on connection: inout Connection
        ) throws {
            guard try !OAuthClient.isSet(client, in: environment, on: &connection) else {
                throw CommandFailure("\(client) is the client of people's logins; an integration needs its own client")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the integrations.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let rows = try IntegrationStore.list(on: &connection)
            let table = Table(
                ["ENVIRONMENT", "NAME", "CREDENTIAL", "SINCE"], rows,
                empty: "no integrations; add one with: fieldpost environment integration add"
            ) { row in
                [row.environment, row.name, row.clientId.map { "tokens of \($0)" } ?? "a key", row.createdAt]
            }
            try output.show(rows, table)
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke an integration's access.",
            discussion: "Its requests are rejected immediately; its streams end within seconds.")
        @Argument(help: "Name of the integration.") var name: String
        @Option(help: "Environment; required if there are several.", completion: Completion.environments)
        var environment: String?
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            let isRemoved = try IntegrationStore.remove(
                name, in: environment,
                record: Administrator.commandLine.audit(.integrationRemoved, name, in: environment, decision: 0),
                on: &connection)
            guard isRemoved else { throw CommandFailure("integration \(name) does not exist") }
            print("access of \(name) is revoked")
        }
    }
}
