import ArgumentParser
import Crypto
import Environments
import FoundationEssentials
import Model
import Postgres
import Realms

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
            let added = try connection.run([
                """
                SELECT realm.miss(ARRAY[0]) WHERE EXISTS (
                    SELECT FROM access.integration WHERE environment_id = \(environment.rawValue)
                        AND (name = \(name) OR client_id = \(clientId)))
                """,
                """
                INSERT INTO access.integration (environment_id, name, key_hash, client_id, subject)
                VALUES (\(environment.rawValue), \(name), \(hash), \(clientId), \(subject)) ON CONFLICT DO NOTHING
                """,
                Administrator.audit(.integrationAdded, name, in: environment, detail: detail, decision: 0),
            ])[1].affectedCount
            guard added == 1 else {
                throw CommandFailure("there is an integration of this name or client id; remove it first")
            }
            print(key ?? "\(name) comes in with tokens of the client \(clientId ?? "")")
        }

        /// People's tokens are issued to the client that they log in with.
        private func refuse(
            loginClient client: String, of environment: EnvironmentID, on connection: inout Connection
        ) throws {
            let rows = try connection.run(
                """
                SELECT FROM access.provider WHERE environment_id = \(environment.rawValue) AND client_id = \(client)
                """)
            guard rows.count == 0 else {
                throw CommandFailure("\(client) is the client that people log in with; an integration needs its own")
            }
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the integrations.")
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        struct Row: Encodable {
            let environment: String
            let name: String
            let clientId: String?
            let subject: String?
            let createdAt: String
        }

        func run() throws {
            var connection = try database.connect()
            let rows = try connection.run(
                """
                SELECT e.name, i.name, i.client_id, i.subject,
                    to_char(i.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
                FROM access.integration i JOIN realm.environment e ON e.id = i.environment_id ORDER BY 1, 2
                """
            ).map { row in
                Row(
                    environment: try row.value(0), name: try row.value(1), clientId: try row.optional(2),
                    subject: try row.optional(3), createdAt: try row.value(4))
            }
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
            // Under the counter's lock: a write that is under way is before it, and none comes after it.
            let removed = try connection.run([
                "SELECT FROM realm.environment WHERE id = \(environment.rawValue) FOR UPDATE",
                """
                SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                    SELECT FROM access.integration WHERE environment_id = \(environment.rawValue) AND name = \(name))
                """,
                "DELETE FROM access.integration WHERE environment_id = \(environment.rawValue) AND name = \(name)",
                Administrator.audit(.integrationRemoved, name, in: environment, decision: 0),
            ])[2].affectedCount
            guard removed == 1 else { throw CommandFailure("there is no integration \(name)") }
            print("\(name) is shut out")
        }
    }
}
