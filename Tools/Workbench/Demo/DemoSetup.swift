import Access
import Algorithms
import BackendConnections
import BackendProtocol
import Essentials
import FoundationEssentials
import HTTPClient
import Identity
import Model
import ObjectStore
import Postgres
import Tenants

/// The demo's environment and its people in PostgreSQL.
struct DemoSetup: Sendable {
    let pool: Pool
    let environmentName: String
    let identity: IdentitySandbox
    let backend: any DemoBackend
    /// `nil`: nobody can log in, unless that was settled before.
    var login: DemoLogin?
    /// Whether the identity provider of an environment that is added has the shape of Microsoft Entra ID.
    var isEntra = false

    /// How the people of the demo sign in, and where their objects are.
    struct Environment: Sendable {
        let id: EnvironmentID
        /// The issuer of their tokens.
        let issuer: String
    }

    static let audience = "fieldpost"

    /// Adds the environment, unless it is there: one that is there keeps its identity provider and its back end.
    func addEnvironment(_ people: [Organisation.Person]) async throws -> Environment {
        let (name, backend, login, provider) = (environmentName, backend, login, identity.url)
        let isEntra = isEntra
        let (issuer, keys) = try await identity.issuer(below: isEntra ? IdentitySandbox.tenant(of: name) : name)
        let domains = Set(people.compactMap { $0.email.split(separator: "@").last.map(String.init) }).sorted()
        let members = people.map { BackendPerson(email: $0.email, reference: backend.reference(of: $0)) }
        return try await pool.run { connection in
            if let there = try Self.find(name, on: &connection) {
                try connection.run(EnvironmentStore.addPeople(members, to: name))
                try login?.open(there.id, of: provider, on: &connection)
                return there
            }
            var environment = StoredEnvironment(name: name)
            environment.domains = domains
            (environment.issuer, environment.audience, environment.jwksURL) = (issuer, Self.audience, keys)
            // Its tokens say nothing of addresses but the name that people log in with.
            if isEntra { environment.addressVouchedBy = AddressVouching.issuer.rawValue }
            let sort = type(of: backend)
            (environment.backend, environment.backendURL, environment.backendUser) = (sort.kind, backend.url, sort.user)
            environment.backendPasswordVariable = sort.passwordVariable
            try connection.run(
                EnvironmentStore.save(environment) + [try EnvironmentStore.addPeople(members, to: name)])
            let added = try Self.found(name, on: &connection)
            try login?.open(added.id, of: provider, on: &connection)
            return added
        }
    }

    /// - Throws: ``DemoProblem`` when there is no such environment with an identity provider.
    func environment() async throws -> Environment {
        let name = environmentName
        return try await pool.run { try Self.found(name, on: &$0) }
    }

    private static func found(_ name: String, on connection: inout Connection) throws -> Environment {
        guard let environment = try find(name, on: &connection) else {
            throw DemoProblem("there is no environment \(name) with an identity provider")
        }
        return environment
    }

    private static func find(_ name: String, on connection: inout Connection) throws -> Environment? {
        guard let stored = try EnvironmentStore.load(name, on: &connection), let id = stored.id, !stored.issuer.isEmpty
        else { return nil }
        return Environment(id: id, issuer: stored.issuer)
    }

    /// Invites people who are not known yet: from then on their realms are filled.
    func invite(_ people: [Organisation.Person], to environment: EnvironmentID) async throws {
        for batch in people.chunks(ofCount: Registration.batchCountMax) {
            let emails = batch.map { EmailAddress.lowered($0.email) }
            _ = try await pool.run { connection in
                try Registration.register(emails, in: environment, on: &connection).count
            }
        }
    }

    /// Gives people roles, as `fieldpost role` does.
    ///
    /// - Parameter roles: The ids of `Person` objects, each once.
    static func give(
        _ roles: [(person: UUID, role: Role)], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        var directory = RealmDirectory()
        guard let common = try directory.id(of: .common, in: environment, create: true, on: &connection) else { return }
        let keys = roles.map { ObjectKey(realm: common, kind: .person, id: $0.person) }
        for _ in 0..<givingMax {
            let persons = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
            var batch = WriteBatch(environment: environment)
            for (decision, (key, role)) in zip(keys, roles.map(\.role)).enumerated() {
                guard let person = persons[key] else { throw DemoProblem("there is no Person \(key.id.text)") }
                try batch.patch(person, try CanonicalJSON(encoding: ["role": role]), decision: decision)
            }
            if try batch.commit(on: &connection).missed.isEmpty { return }
        }
        throw DemoProblem("others write the people whose roles are given all the time")
    }

    /// How often roles are given when others write the same people.
    private static let givingMax = 10

    /// The ids of people's `Person` objects, in their order.
    func objects(of people: [Organisation.Person], in environment: EnvironmentID) async throws -> [UUID] {
        let emails = people.map { EmailAddress.lowered($0.email) }
        let found = try await pool.run { try People.objects(of: emails, in: environment, on: &$0) }
        let ids = Dictionary(found.map { ($0.email, $0.id) }, uniquingKeysWith: { first, _ in first })
        return try emails.map { email in
            guard let id = ids[email] else { throw DemoProblem("\(email) was not invited") }
            return id
        }
    }

    /// How many of the people have a filled realm.
    func initializedCount(of people: [Organisation.Person], in environment: EnvironmentID) async throws -> Int {
        let emails = people.map { EmailAddress.lowered($0.email) }
        return try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT count(DISTINCT o.fields->>'userId') FROM realm.object o
                JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment.rawValue) AND r.path = \(RealmPath.users.description)
                    AND o.kind = \(Kind.realms.rawValue) AND NOT o.deleted
                    AND (o.fields->>'isInitialized')::boolean AND o.fields->>'userId' = ANY (\(emails))
                """)
            return Int(try rows[0].decode(Int64.self))
        }
    }
}
