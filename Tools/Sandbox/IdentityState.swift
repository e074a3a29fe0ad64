import Crypto
import Essentials
import FoundationEssentials
import Synchronization

/// An application that may request logins, or tokens of its own (RFC 6749 §2).
struct IdentityClient: Decodable, Sendable {
    var id: String
    var secret: String
    /// Compared whole (RFC 9700 §2.1).
    var redirectURIs: [String]?
    /// The roles in its own tokens (`client_credentials`); without roles it gets none.
    var roles: [String]?

    enum CodingKeys: String, CodingKey {
        case id, secret, roles
        case redirectURIs = "redirectUris"
    }
}

/// The claims of a person that do not follow from the login address.
struct IdentityPerson: Decodable, Sendable {
    var email: String
    var password: String?
    var subject: String?
    /// The `email` claim; an issuer of Entra's shape leaves it out unless it is given.
    var tokenEmail: String?
    var emailVerified: Bool?
    var name: String?
    /// Entra's `xms_edov`, `preferred_username`, `tid` and `idp`.
    var edov: Bool?
    var preferredUsername: String?
    var tenant: String?
    var provider: String?
}

/// The failures of the provider.
struct IdentitySwitches: Codable, Sendable {
    enum Failure: String, Codable, Sendable {
        /// No failure.
        case none
        /// Errors as RFC 6749 has them.
        case serverError = "server_error"
        /// 503 to everything.
        case down
        /// Every response takes `slowMilliseconds`.
        case slow
        /// No response until the switch changes.
        case held
    }

    var failure: Failure?
    /// A part of the path at which it fails, for example `token`; all paths unless given.
    var failureAt: String?
    var slowMilliseconds: Int?
    /// By how much the provider's clock is ahead.
    var clockSkewSeconds: Int?
    /// The configuration names no revocation endpoint.
    var hidesRevocation: Bool?
}

/// The provider's state. Logins in progress are lost with a restart; configured clients are kept.
final class IdentityState: Sendable {
    /// A login in progress.
    struct Login: Sendable {
        let issuer: String
        let client: String
        let redirectURI: String
        let scope: Set<String>
        var state: String?
        var nonce: String?
        var challenge: String?
        var email: String?
        var expires: Int64
    }

    enum LoginStage { case login, code, refreshToken }

    private struct State {
        var clients: [String: IdentityClient] = [:]
        var people: [String: IdentityPerson] = [:]
        var switches = IdentitySwitches()
        /// By what the browser, the code, or the refresh token carries.
        var logins: [LoginStage: [String: Login]] = [:]
    }

    private static let countMax = 50_000

    let password: String
    private let state = Mutex(State())

    init(password: String, clients: [IdentityClient] = []) {
        self.password = password
        for client in clients { add(client) }
    }

    func add(_ client: IdentityClient) { state.withLock { $0.clients[client.id] = client } }
    func add(_ person: IdentityPerson) { state.withLock { $0.people[person.email.lowercased()] = person } }
    func client(_ id: String) -> IdentityClient? { state.withLock { $0.clients[id] } }
    func person(_ email: String) -> IdentityPerson? { state.withLock { $0.people[email.lowercased()] } }

    var switches: IdentitySwitches {
        get { state.withLock { $0.switches } }
        set { state.withLock { $0.switches = newValue } }
    }

    /// The provider's time, in seconds since 1970.
    var now: Int { Int(Timestamp.now().secondsSinceEpoch) + (switches.clockSkewSeconds ?? 0) }

    func isRight(_ password: String, of email: String) -> Bool {
        guard email.contains("@") else { return false }
        return password == person(email)?.password ?? self.password
    }

    // MARK: Logins in progress

    /// Keeps a login under a new random name.
    func keep(_ login: Login, as stage: LoginStage) -> String {
        let name = Base64URL.random(byteCount: 32)
        state.withLock { state in
            if state.logins[stage, default: [:]].count >= Self.countMax {
                state.logins[stage] = state.logins[stage]?.filter { $0.value.expires > Self.clock }
            }
            state.logins[stage, default: [:]][name] = login
        }
        return name
    }

    func find(_ name: String, as stage: LoginStage) -> Login? {
        state.withLock { $0.logins[stage]?[name] }.flatMap { $0.expires > Self.clock ? $0 : nil }
    }

    /// Each is used once.
    func take(_ name: String, as stage: LoginStage) -> Login? {
        state.withLock { $0.logins[stage]?.removeValue(forKey: name) }.flatMap { $0.expires > Self.clock ? $0 : nil }
    }

    func count(of stage: LoginStage) -> Int { state.withLock { $0.logins[stage]?.count ?? 0 } }

    func removeAll(_ stage: LoginStage) { state.withLock { $0.logins[stage] = nil } }

    static var clock: Int64 { Timestamp.now().secondsSinceEpoch }
}
