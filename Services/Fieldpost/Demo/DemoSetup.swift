import FoundationEssentials
import HTTP
import Model
import Postgres
import Realms

/// The demo's environment and its people in PostgreSQL.
struct DemoSetup: Sendable {
    let pool: Pool
    let environmentName: String
    let identity: IdentitySandbox
    let sapURL: String

    /// How the people of the demo sign in, and where their objects are.
    struct Environment: Sendable {
        let id: EnvironmentID
        /// The issuer of their tokens.
        let issuer: String
    }

    /// Names the services' variable with the password of the sandbox's user. Without their prefix: it is none of
    /// their settings.
    static let passwordVariable = "SANDBOX_SAP_PASSWORD"
    static let sapUser = "FIELDPOST"
    static let audience = "fieldpost"
    /// People in one transaction.
    private static let peoplePerBatchMax = 500

    /// Adds the environment, unless it is there; one that is there keeps its settings.
    func addEnvironment(domains: [String]) async throws -> Environment {
        let (name, sapURL) = (environmentName, sapURL)
        let (issuer, keys) = try await identity.issuer(below: name)
        return try await pool.run { connection in
            try connection.run([
                "INSERT INTO realm.environment (name) VALUES (\(name)) ON CONFLICT DO NOTHING",
                """
                INSERT INTO access.provider (environment_id, domains, issuer, audience, jwks_url)
                SELECT id, \(domains), \(issuer), \(Self.audience), \(keys)
                FROM realm.environment WHERE name = \(name) ON CONFLICT DO NOTHING
                """,
                """
                INSERT INTO backend.connection (environment_id, kind, url, user_name, password_variable)
                SELECT id, 'sap', \(sapURL), \(Self.sapUser), \(Self.passwordVariable)
                FROM realm.environment WHERE name = \(name) ON CONFLICT DO NOTHING
                """,
            ])
            return try Self.environment(name, on: &connection)
        }
    }

    /// - Throws: ``DemoProblem`` when there is no such environment with an identity provider.
    func environment() async throws -> Environment {
        let name = environmentName
        return try await pool.run { try Self.environment(name, on: &$0) }
    }

    private static func environment(_ name: String, on connection: inout Connection) throws -> Environment {
        let rows = try connection.run(
            """
            SELECT e.id, p.issuer FROM realm.environment e JOIN access.provider p ON p.environment_id = e.id
            WHERE e.name = \(name)
            """)
        guard rows.count == 1 else {
            throw DemoProblem("there is no environment \(name) with an identity provider of its own")
        }
        return Environment(id: EnvironmentID(rawValue: try rows[0].value(0)), issuer: try rows[0].value(1))
    }

    /// Invites people who are not known yet: from then on their realms are filled.
    func invite(_ people: [Organisation.Person], to environment: EnvironmentID) async throws {
        for start in stride(from: 0, to: people.count, by: Self.peoplePerBatchMax) {
            let some = Array(people[start..<min(start + Self.peoplePerBatchMax, people.count)])
            try await pool.run { try Self.invite(some, to: environment, on: &$0) }
        }
    }

    private static func invite(
        _ people: [Organisation.Person], to environment: EnvironmentID, on connection: inout Connection
    ) throws {
        var directory = RealmDirectory()
        guard let users = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
            throw DemoProblem("the realm /users cannot be made")
        }
        var references = BinaryArray(of: JSONBytes.self)
        for person in people { references.append(JSONBytes(Array(try JSONEncoder().encode(person.reference)))) }
        let emails = people.map { $0.email.lowercased() }
        var batch = WriteBatch(environment: environment)
        batch.also(
            """
            INSERT INTO backend.person (environment_id, email, reference)
            SELECT \(environment.rawValue), e, r FROM unnest(\(emails), \(references)) AS p(e, r)
            ON CONFLICT (environment_id, email) DO UPDATE SET reference = excluded.reference
            """)
        batch.also(
            """
            INSERT INTO access.person (environment_id, email)
            SELECT \(environment.rawValue), e FROM unnest(\(emails)) AS p(e) ON CONFLICT DO NOTHING
            """)
        for (index, email) in emails.enumerated() {
            let id = EnvironmentCommand.Invite.objectID(of: email, in: environment)
            let key = ObjectKey(realm: users, kind: .realms, id: id)
            let fields = Realms(userId: email, path: try RealmPath.user(email))
            // Only a new one: an object that is there says how far the realm is filled.
            batch.expect(key, at: 0, decision: index)
            batch.put(key, JSONBytes(Array(try JSONEncoder().encode(fields))), decision: index, isEdit: true)
        }
        _ = try batch.commit(on: &connection)
    }

    /// How many of the people have a filled realm.
    func initializedCount(of people: [Organisation.Person], in environment: EnvironmentID) async throws -> Int {
        let emails = people.map { $0.email.lowercased() }
        return try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT count(DISTINCT o.fields->>'userId') FROM realm.object o
                JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment.rawValue) AND r.path = \(RealmPath.users.description)
                    AND o.kind = \(Kind.realms.rawValue) AND NOT o.deleted
                    AND (o.fields->>'isInitialized')::boolean AND o.fields->>'userId' = ANY (\(emails))
                """)
            return Int(try rows[0].value(0, as: Int64.self))
        }
    }
}

extension Organisation.Person {
    /// How the back end calls the person.
    fileprivate var reference: [String: String] {
        [
            "personWorkAgreementExternalId": personWorkAgreementExternalId, "companyCode": companyCode,
            "businessPartnerUuid": businessPartnerUuid.text,
        ]
    }
}
