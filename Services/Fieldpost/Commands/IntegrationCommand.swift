import Access
import ArgumentParser
import Audit
import CommandLineSupport
import Crypto
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// `fieldpost environment integration`: the programs that may open every realm of an environment.
struct IntegrationCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "integration", abstract: "Programs that may open and write every realm of an environment.",
        subcommands: [Add.self, List.self, Remove.self])

    struct Add: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Let an integration in, with a key or with the identity provider's tokens.",
            discussion: """
                Without --client-id a key is made and printed, this once: the integration sends it as its bearer token.
                With it, a token of the environment's identity provider (client credentials) lets in when it is for the
                environment's audience, names no e-mail address and no login (nonce, auth_time, scope openid), its azp,
                client_id or appid is ID (or it has none of these), and its sub is SUBJECT: ID, unless --subject says
                what the provider writes there instead. Keycloak writes the id of the client's service account user,
                Entra the object id of the service principal.
                """)
        @Argument(help: "Small letters, digits and hyphens.") var name: String
        @Option(help: ArgumentHelp("The integration's client at the identity provider.", valueName: "id"))
        var clientId: String?
        @Option(help: ArgumentHelp("The sub of that client's own tokens, when it is not ID.", valueName: "subject"))
        var subject: String?
        @Option(help: "The environment; needed when there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions

        func validate() throws {
            let isName = { (byte: UInt8) in (97...122).contains(byte) || (48...57).contains(byte) }
            guard let first = name.utf8.first, isName(first), name.utf8.count <= 63,
                name.utf8.allSatisfy({ isName($0) || $0 == UInt8(ascii: "-") })
            else { throw ValidationError("the name must be small letters, digits and hyphens, at most 63") }
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
            if let clientId { try refuse(loginClient: clientId, of: environment, on: &connection) }
            let detail = ["clientId": clientId, "subject": subject].compactMapValues(\.self)
            let isAdded = try IntegrationStore.add(
                name, keyHash: hash, clientID: clientId, subject: subject, in: environment,
                record: Administrator.commandLine.audit(
                    .integrationAdded, name, in: environment, detail: detail, decision: 0),
                on: &connection)
            guard isAdded else {
                throw CommandFailure("there is an integration of this name or client id; remove it first")
            }
            print(key ?? "\(name) comes in with tokens of the client \(clientId ?? "")")
        }

        /// People's tokens are issued to the client that they log in with.
        private func refuse(
            loginClient client: String, of environment: EnvironmentID, on connection: inout Connection
        ) throws {
            guard try !OAuthClient.isSet(client, in: environment, on: &connection) else {
                throw CommandFailure("\(client) is the client that people log in with; an integration needs its own")
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
            var table = Table(
                [("ENVIRONMENT", .left), ("NAME", .left), ("COMES WITH", .left), ("SINCE", .left)],
                empty: "there is no integration; add one with: fieldpost environment integration add")
            for row in rows {
                table.add([row.environment, row.name, row.clientId.map { "tokens of \($0)" } ?? "a key", row.createdAt])
            }
            try output.show(rows, table)
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Shut an integration out.",
            discussion: "What it writes is refused at once; its live streams end within seconds.")
        @Argument(help: "The integration's name.") var name: String
        @Option(help: "The environment; needed when there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions

        func run() throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            let isRemoved = try IntegrationStore.remove(
                name, in: environment,
                record: Administrator.commandLine.audit(.integrationRemoved, name, in: environment, decision: 0),
                on: &connection)
            guard isRemoved else { throw CommandFailure("there is no integration \(name)") }
            print("\(name) is shut out")
        }
    }
}
