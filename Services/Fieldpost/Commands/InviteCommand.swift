import ArgumentParser
import Backends
import FoundationEssentials
import Model
import Postgres
import Realms

extension EnvironmentCommand {
    /// `fieldpost environment invite`: makes people's realms known, so that `realm-initializer` fills them.
    struct Invite: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make people's realms known, so that they are filled from the back end.",
            discussion: "Who was invited already stays as he is.")
        @Argument(help: "E-mail addresses of people that were added with the environment.") var emails: [String] = []
        @Flag(help: "Everybody whom the environment has.") var all = false
        @Option(help: "The environment; needed when there are several.") var environment: String?
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        /// Objects written in one transaction.
        static let batchCountMax = 500

        func validate() throws {
            guard emails.isEmpty == all else {
                throw ValidationError(
                    emails.isEmpty ? "give e-mail addresses or --all" : "give e-mail addresses or --all, not both")
            }
        }

        func run() throws {
            var connection = try database.connect()
            let environment = try EnvironmentStore.find(environment, on: &connection)
            let wanted = emails.map { $0.lowercased() }
            let people = try connection.run(
                """
                SELECT email FROM backend.person WHERE environment_id = \(environment.rawValue)
                    AND (\(all) OR email = ANY (\(wanted))) ORDER BY email
                """
            ).map { try $0.value(0, as: String.self) }
            if let stranger = wanted.first(where: { !people.contains($0) }) {
                throw CommandFailure("\(stranger) is none of the environment's people; add --people first")
            }
            var rows: [Invitation] = []
            for start in stride(from: 0, to: people.count, by: Self.batchCountMax) {
                let batch = people[start..<min(start + Self.batchCountMax, people.count)]
                rows += try Self.invite(Array(batch), in: environment, on: &connection)
            }
            try show(rows)
        }

        private func show(_ rows: [Invitation]) throws {
            if output.json { return try printJSON(rows) }
            let count = rows.count { $0.isNew }
            if rows.count > 20 {
                print("\(count) people invited, \(rows.count - count) were invited before")
                return
            }
            var table = Table([("PERSON", .left), ("REALM", .left), ("STATE", .left)], empty: "nobody to invite")
            for row in rows { table.add([row.email, row.realm, row.isNew ? "invited" : "was invited before"]) }
            print(table.text, terminator: "")
        }

        struct Invitation: Encodable {
            let email: String
            let realm: String
            let isNew: Bool
        }

        /// Invites at most ``batchCountMax`` people in one transaction.
        @discardableResult
        static func invite(
            _ emails: [String], in environment: EnvironmentID, on connection: inout Connection
        ) throws -> [Invitation] {
            var directory = RealmDirectory()
            guard let users = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
                throw CommandFailure("the realm \(RealmPath.users) could not be made")
            }
            var batch = WriteBatch(environment: environment)
            let paths = try emails.map { try RealmPath.user($0) }
            for (decision, email) in emails.enumerated() {
                let key = ObjectKey(realm: users, kind: .realms, id: objectID(of: email, in: environment))
                let fields = try JSONEncoder().encode(Realms(userId: email, path: paths[decision]))
                batch.expect(key, at: 0, decision: decision)
                batch.put(key, JSONBytes(Array(fields)), decision: decision)
            }
            batch.also(
                """
                INSERT INTO access.person (environment_id, email)
                SELECT \(environment.rawValue), e FROM unnest(\(emails)) AS p(e) ON CONFLICT DO NOTHING
                """)
            let missed = try batch.commit(on: &connection).missed
            return emails.indices.map {
                Invitation(email: emails[$0], realm: paths[$0].description, isNew: !missed.contains($0))
            }
        }

        /// The same person has the same object, whoever invites and how often.
        static func objectID(of email: String, in environment: EnvironmentID) -> UUID {
            UUID(name: "\(environment)/\(email)", in: namespace)
        }

        /// The namespace of `Realms` objects, chosen once and for ever.
        private static let namespace = UUID(
            uuid: (0x6B, 0x1D, 0x3C, 0x0A, 0x52, 0x7E, 0x4F, 0x0B, 0x9A, 0x61, 0x08, 0x2F, 0xD4, 0x73, 0xC5, 0x19))
    }
}
