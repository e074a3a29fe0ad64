import Access
import Algorithms
import BackendProtocol
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import ObjectStore
import Postgres
import Secrets
import ServiceSettings
import Tenants

/// The demo's environment and its people in PostgreSQL.
struct DemoSetup: Sendable {
    let pool: Pool
    let environmentName: String
    let identity: IdentitySandbox
    /// `nil`: an environment without a back end.
    let backend: (any DemoBackend)?
    /// `nil`: no person can log in, unless the environment already has a login.
    var login: DemoLogin?
    /// Whether the identity provider of an environment that is added has the shape of Microsoft Entra ID.
    var isEntra = false

    /// The demo's environment, and the issuer of its people's tokens.
    typealias Environment = (id: EnvironmentID, issuer: String)

    static let audience = "fieldpost"

    /// Adds the environment unless it exists; an existing one keeps its identity provider and its back end.
    func addEnvironment(_ people: [Organisation.Person]) async throws -> Environment {
        let name = environmentName
        let (issuer, keys) = try await identity.issuer(below: isEntra ? IdentitySandbox.tenant(of: name) : name)
        let domains = Set(people.compactMap { $0.email.split(separator: "@").last.map(String.init) }).sorted()
        let members = backend.map { backend in
            people.map { BackendPerson(email: $0.email, reference: backend.reference(of: $0)) }
        }
        return try await pool.run { connection in
            if try EnvironmentStore.load(name, on: &connection) == nil {
                var environment = StoredEnvironment(name: name)
                environment.domains = domains
                (environment.issuer, environment.audience, environment.jwksURL) = (issuer, Self.audience, keys)
                // Its tokens have no verified address, only the login name.
                if isEntra { environment.addressVerifiedBy = AddressVerification.issuer.rawValue }
                environment.backend = StoredEnvironment.noBackend
                if let backend {
                    let kind = type(of: backend)
                    (environment.backend, environment.backendURL) = (kind.kind, backend.url)
                    (environment.backendUser, environment.backendPasswordVariable) = (kind.user, kind.passwordVariable)
                }
                try connection.run(EnvironmentStore.save(environment))
            }
            if let members { try connection.run(EnvironmentStore.addPeople(members, to: name)) }
            let environment = try Self.find(name, on: &connection)
            try login?.open(environment.id, of: identity.url, on: &connection)
            return environment
        }
    }

    /// - Throws: ``DemoFailure`` when there is no such environment with an identity provider.
    func environment() async throws -> Environment {
        try await pool.run { try Self.find(environmentName, on: &$0) }
    }

    private static func find(_ name: String, on connection: inout Connection) throws -> Environment {
        guard let stored = try EnvironmentStore.load(name, on: &connection), let id = stored.id, !stored.issuer.isEmpty
        else { throw DemoFailure("there is no environment \(name) with an identity provider") }
        return (id, stored.issuer)
    }

    /// Invites people, so that their realms are filled.
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
                guard let person = persons[key] else { throw DemoFailure("there is no Person \(key.id.text)") }
                try batch.patch(person, try CanonicalJSON(encoding: ["role": role]), decision: decision)
            }
            if try batch.commit(on: &connection).conflicts.isEmpty { return }
        }
        throw DemoFailure("others write the people whose roles are given all the time")
    }

    /// Maximum number of attempts while other transactions change the same people.
    private static let givingMax = 10

    /// Gives the map an outline unless it has one, as `fieldpost environment outline` does.
    ///
    /// - Parameter geoJSON: The outline.
    static func draw(_ geoJSON: String, in environment: EnvironmentID, on connection: inout Connection) throws {
        guard try OutlineStore.load(environment, on: &connection) == nil else { return }
        let outline = try JSONDecoder().decode(MapOutline.self, from: Data(geoJSON.utf8))
        try connection.run([try OutlineStore.save(outline, in: environment)])
    }

    /// The ids of people's `Person` objects, in their order.
    func objects(of people: [Organisation.Person], in environment: EnvironmentID) async throws -> [UUID] {
        let emails = people.map { EmailAddress.lowered($0.email) }
        let found = try await pool.run { try People.objects(of: emails, in: environment, on: &$0) }
        let ids = Dictionary(found.map { ($0.email, $0.id) }, uniquingKeysWith: { first, _ in first })
        return try emails.map { email in
            guard let id = ids[email] else { throw DemoFailure("\(email) was not invited") }
            return id
        }
    }

    /// Invites people, and waits until their realms are filled.
    func fillRealms(of people: [Organisation.Person], in environment: EnvironmentID, within: Duration) async throws {
        try await invite(people, to: environment)
        try await waitUntil("all realms are initialized", within: within) {
            try await initializedCount(of: people, in: environment) == people.count
        }
    }

    /// The number of people with a filled realm.
    func initializedCount(of people: [Organisation.Person], in environment: EnvironmentID) async throws -> Int {
        let emails = people.map { EmailAddress.lowered($0.email) }
        return try await pool.number(
            """
            SELECT count(DISTINCT o.fields->>'userId') FROM realm.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.environment_id = \(environment.rawValue) AND r.path = \(RealmPath.users.description)
                AND o.kind = \(Kind.realms.rawValue) AND NOT o.deleted
                AND (o.fields->>'isInitialized')::boolean AND o.fields->>'userId' = ANY (\(emails))
            """)
    }
}

extension Pool {
    /// Runs a query for one number.
    func number(_ query: Statement) async throws -> Int {
        try await run { Int(try $0.run(query)[0].decode(Int64.self)) }
    }
}

/// The login of the demo's people at onboarding, by the OAuth client of the emulated identity provider.
struct DemoLogin: Sendable {
    static let secretVariable = "SANDBOX_CLIENT_SECRET"
    /// The password of all people.
    static let password = "sandbox"

    private let secret: String
    private let secrets: SecretBox

    /// - Returns: `nil` if the environment variables have no client secret, or no key to seal it with.
    static func inherited() throws -> DemoLogin? {
        let variables = ProcessInfo.processInfo.environment
        let keys = variables.filter { $0.key == Setting.secretKeys.variable }
        let secrets = try SecretBox(Configuration([.secretKeys], environment: keys).list(.secretKeys))
        guard secrets.canSeal, let secret = variables[secretVariable], !secret.isEmpty else { return nil }
        return DemoLogin(secret: secret, secrets: secrets)
    }

    /// Seals a text for the services.
    ///
    /// - Parameter context: The context of the sealed text.
    func seal(_ text: String, at context: String) throws -> Bytea { Bytea(try secrets.seal(text, at: context)) }

    /// Gives an environment of this identity provider its login, unless it has one.
    ///
    /// - Parameter issuer: What the issuers of the identity provider begin with.
    func open(_ environment: EnvironmentID, of issuer: String, on connection: inout Connection) throws {
        let sealed = try seal(secret, at: SecretContext.clientSecret(environment))
        try connection.run(OAuthClient.set(LocalCluster.clientID, secret: sealed, in: environment, ofIssuer: issuer))
    }
}
