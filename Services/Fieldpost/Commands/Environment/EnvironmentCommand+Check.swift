import AdminQueries
import ArgumentParser
import BackendConnections
import BackendProtocol
import CommandLineSupport
import Essentials
import FoundationEssentials
import HTTPClient
import Identity
import Model
import Postgres
import Secrets
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment check`: tests the external systems of an environment.
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Test an environment's identity provider and back end.",
            discussion: """
                Also reports each open circuit breaker: since when, the number of keys that wait, the next attempt and \
                the cause. Exits with status 1 if a check fails or a circuit breaker is open.
                """)
        @Argument(help: "The environment.", completion: Completion.environments) var name: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() async throws {
            var connection = try database.connect()
            guard let check = try EnvironmentCheck.load(name, on: &connection) else {
                throw CommandFailure("environment \(name) does not exist")
            }
            try EnvironmentFinding.show(await check.findings(), output)
        }
    }
}

/// The result of checking one external system of an environment.
struct EnvironmentFinding: Encodable {
    let what: String
    let works: Bool
    let detail: String

    private enum CodingKeys: String, CodingKey {
        case works, detail
        case what = "check"
    }

    /// - Throws: `ExitCode` if a check failed.
    static func show(_ findings: [EnvironmentFinding], _ output: OutputOptions) throws {
        let table = Table(["CHECK", "STATE", "DETAIL"], findings) {
            [$0.what, $0.works ? "works" : "FAILS", $0.detail]
        }
        try output.show(findings, table)
        if findings.contains(where: { !$0.works }) { throw ExitCode(1) }
    }
}

/// Calls each external system once, with a timeout.
struct EnvironmentCheck {
    let stored: StoredEnvironment
    let id: EnvironmentID
    /// Claims of the newest login; `nil` before the first one.
    let claims: LoginTokenClaims?
    let backend: BackendConfiguration?
    /// A person whose entries and choices are requested.
    let person: BackendPerson?
    /// The open circuit breakers of its back end and tracker.
    let circuits: [DeferredKeyStore.OpenCircuit]

    private static let callMax = Duration.seconds(10)

    /// Loads the configuration; `nil` if the environment does not exist.
    static func load(_ name: String, on connection: inout Connection) throws -> EnvironmentCheck? {
        guard let stored = try EnvironmentStore.load(name, on: &connection), let id = stored.id else { return nil }
        let first = try BackendPeople.firstEmail(in: id, on: &connection)
        return EnvironmentCheck(
            stored: stored, id: id, claims: try LoginTokenClaims.load(id, on: &connection),
            backend: try BackendConfiguration.load(id, on: &connection),
            person: try first.flatMap { try BackendPerson.load([$0], in: id, on: &connection)[$0] },
            circuits: try DeferredKeyStore.openCircuits(in: id, on: &connection))
    }

    func findings() async -> [EnvironmentFinding] {
        let client = Client()
        defer { client.shutDown() }
        var findings: [EnvironmentFinding] = []
        let provider = OpenIDProvider(client: client, callMax: Self.callMax)
        do throws(ProviderFailure) {
            let metadata = try await provider.discover(stored.issuer, at: stored.discoveryURL)
            findings.append(.init(what: "discovery", works: true, detail: metadata.issuer))
            let isStored = metadata.jwksURL == stored.jwksURL
            findings.append(await keys(at: stored.jwksURL, client, isStored ? nil : metadata.jwksURL))
            findings.append(await application(provider, metadata))
        } catch {
            findings.append(.init(what: "discovery", works: false, detail: error.description))
            findings.append(await keys(at: stored.jwksURL, client, nil))
        }
        findings.append(LoginTokenClaims.finding(claims, stored))
        findings.append(await backEnd(client))
        findings += circuits.map {
            EnvironmentFinding(what: "circuit breaker of \($0.group)", works: false, detail: $0.text())
        }
        return findings
    }

    private func keys(at url: String, _ client: Client, _ other: String?) async -> EnvironmentFinding {
        struct Document: Decodable {
            struct Key: Decodable { let kty: String }
            let keys: [Key]
        }
        do {
            let bytes = try await JWKS(client: client).fetch(url)
            let document = try JSONDecoder().decode(Document.self, from: Data(bytes))
            if let other {
                return .init(
                    what: "keys", works: false, detail: "stored \(url), but the provider publishes \(other): --jwks-url"
                )
            }
            return .init(
                what: "keys", works: !document.keys.isEmpty,
                detail: document.keys.isEmpty ? "\(url) has none" : "\(document.keys.count) at \(url)")
        } catch {
            return .init(what: "keys", works: false, detail: "\(url): \(error)")
        }
    }

    /// Sends an invalid code: a provider that accepts the client rejects the code, otherwise the client.
    private func application(_ provider: OpenIDProvider, _ metadata: ProviderMetadata) async -> EnvironmentFinding {
        guard let clientID = stored.clientID, let sealed = stored.clientSecret else {
            return .init(what: "client", works: false, detail: "not set: --client-id, --client-secret-from")
        }
        do {
            let secret = try SecretOptions.box().openText(sealed.bytes, at: SecretContext.clientSecret(id))
            _ = try await provider.exchange(
                "fieldpost-environment-check", verifier: "check", redirect: "https://fieldpost.invalid/auth_callback",
                as: ProviderClient(id: clientID, secret: secret), at: metadata)
            return .init(what: "client", works: false, detail: "the provider accepted an invalid code")
        } catch let failure as ProviderFailure {
            if case .refused(let code, _) = failure, code == "invalid_grant" {
                return .init(what: "client", works: true, detail: "\(clientID) and its secret are valid")
            }
            return .init(what: "client", works: false, detail: failure.description)
        } catch {
            return .init(what: "client", works: false, detail: "\(error)")
        }
    }

    private func backEnd(_ client: Client) async -> EnvironmentFinding {
        guard stored.hasBackend else {
            return .init(what: "back end", works: true, detail: "none: an integration manages the environment")
        }
        guard let backend else { return .init(what: "back end", works: false, detail: "not set: --backend") }
        do {
            let adapter = try backend.make(client: client, secrets: try SecretOptions.box(), callMax: Self.callMax)
            guard let person else {
                return .init(what: "back end", works: false, detail: "no people to request entries of: --people")
            }
            let today = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000)).day
            let entries = try await adapter.entries(of: person, from: today, through: today)
            let choices = try await adapter.reportingData(of: person)
            return .init(
                what: "back end", works: true,
                detail: "\(backend.kind) \(backend.url): \(person.email) has \(entries.count) entries today and can "
                    + "report on \(choices.nodes.count) nodes")
        } catch {
            return .init(what: "back end", works: false, detail: "\(backend.kind) \(backend.url): \(error)")
        }
    }
}

/// The names of the claims in the ID token of an environment's newest login.
struct LoginTokenClaims {
    let names: [String]
    let time: String

    /// - Returns: `nil` before the first login.
    static func load(_ environment: EnvironmentID, on connection: inout Connection) throws -> LoginTokenClaims? {
        let rows = try connection.run(
            """
            SELECT names, to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
            FROM onboarding.token_claims WHERE environment_id = \(environment.rawValue)
            """)
        guard let (names, time) = try rows.first?.decode([String].self, String.self) else { return nil }
        return LoginTokenClaims(names: names, time: time)
    }

    /// Evaluates whether logins with such a token can be accepted.
    static func finding(_ claims: LoginTokenClaims?, _ stored: StoredEnvironment) -> EnvironmentFinding {
        guard let claims else { return .init(what: "claims", works: true, detail: "no login yet") }
        let present = ["email", "email_verified", "xms_edov", "tid", "preferred_username"].map { name in
            "\(name) \(claims.names.contains(name) ? "yes" : "no")"
        }
        let objection = claims.objection(stored.addressVerifiedBy).map { "\($0); " } ?? ""
        return .init(
            what: "claims", works: objection.isEmpty,
            detail: "\(objection)addresses are verified by \(stored.addressVerifiedBy); the token of "
                + "\(claims.time) has \(present.joined(separator: ", ")) (all: \(claims.names.joined(separator: " ")))")
    }

    private func objection(_ verification: String) -> String? {
        switch AddressVerification(rawValue: verification) {
        case .emailVerified, .domainVerified:
            if !names.contains("email") { return "no email: the token has no address" }
            return names.contains(verification) ? nil : "no \(verification): the address is not verified"
        case .issuer:
            return names.contains("email") || names.contains("preferred_username")
                ? nil : "neither email nor preferred_username: the token has no address"
        case nil: return "this program does not support the verification \(verification)"
        }
    }
}
