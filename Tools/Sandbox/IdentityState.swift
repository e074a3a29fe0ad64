import Crypto
import Essentials
import FoundationEssentials
import Synchronization

/// An application that may request logins, or tokens of its own (RFC 6749 §2).
struct IdentityClient: Codable, Sendable {
    var id: String
    var secret: String
    /// Compared whole (RFC 9700 §2.1).
    var redirectURIs: [String] = []
    /// The roles in its own tokens (`client_credentials`); without roles it gets none.
    var roles: [String] = []

    enum CodingKeys: String, CodingKey {
        case id, secret, roles
        case redirectURIs = "redirectUris"
    }

    init(id: String, secret: String, redirectURIs: [String] = [], roles: [String] = []) {
        self.id = id
        self.secret = secret
        self.redirectURIs = redirectURIs
        self.roles = roles
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        id = try container.decode(String.self, forKey: .id)
        secret = try container.decode(String.self, forKey: .secret)
        redirectURIs = try container.decodeIfPresent([String].self, forKey: .redirectURIs) ?? []
        roles = try container.decodeIfPresent([String].self, forKey: .roles) ?? []
    }
}

/// The claims of a person that do not follow from the login address.
struct IdentityPerson: Codable, Sendable {
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
        /// All is well.
        case none
        /// Errors as RFC 6749 has them.
        case serverError = "server_error"
        /// 503 to everything.
        case down
        /// Every response takes `slowMilliseconds`.
        case slow
        /// No response until the switch is another.
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
    /// The login has no consent page.
    var skipsConsent: Bool?
}

/// The provider's state. Logins in progress are lost with a restart; configured clients are kept.
final class IdentityState: Sendable {
    /// A login in progress.
    struct Login: Sendable {
        let issuer: String
        let client: String
        let redirectURI: String
        let scope: Set<String>
        let state: String?
        let nonce: String?
        let challenge: String?
        var email: String?
        let expires: Int64
    }

    private struct State {
        var clients: [String: IdentityClient] = [:]
        var people: [String: IdentityPerson] = [:]
        var switches = IdentitySwitches()
        /// By what the browser, the code, or the refresh token carries.
        var logins: [String: Login] = [:]
        var codes: [String: Login] = [:]
        var refreshTokens: [String: Login] = [:]
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

    /// The provider's own idea of the time, in seconds since 1970.
    var now: Int { Int(Timestamp.now().secondsSinceEpoch) + (switches.clockSkewSeconds ?? 0) }

    func isRight(_ password: String, of email: String) -> Bool {
        guard email.contains("@") else { return false }
        return password == person(email)?.password ?? self.password
    }

    // MARK: Logins in progress

    enum LoginStage { case login, code, refreshToken }

    /// Keeps a login under a new random name.
    func keep(_ login: Login, as stage: LoginStage) -> String {
        let name = Base64URL.text((0..<32).map { _ in UInt8.random(in: 0...255) })
        state.withLock { state in
            Self.with(stage, &state) { logins in
                if logins.count >= Self.countMax { logins = logins.filter { $0.value.expires > Self.clock } }
                logins[name] = login
            }
        }
        return name
    }

    func find(_ name: String, as stage: LoginStage) -> Login? {
        var found: Login?
        state.withLock { state in Self.with(stage, &state) { found = $0[name] } }
        return found.flatMap { $0.expires > Self.clock ? $0 : nil }
    }

    /// Each is used once.
    func take(_ name: String, as stage: LoginStage) -> Login? {
        var found: Login?
        state.withLock { state in Self.with(stage, &state) { found = $0.removeValue(forKey: name) } }
        return found.flatMap { $0.expires > Self.clock ? $0 : nil }
    }

    /// Counts and ends logins.
    func count(of stage: LoginStage) -> Int {
        var count = 0
        state.withLock { state in Self.with(stage, &state) { count = $0.count } }
        return count
    }
    func forget(_ stage: LoginStage) { state.withLock { state in Self.with(stage, &state) { $0 = [:] } } }

    static var clock: Int64 { Timestamp.now().secondsSinceEpoch }

    private static func with(_ stage: LoginStage, _ state: inout State, _ body: (inout [String: Login]) -> Void) {
        switch stage {
        case .login: body(&state.logins)
        case .code: body(&state.codes)
        case .refreshToken: body(&state.refreshTokens)
        }
    }
}
