import Crypto
import Essentials
import FoundationEssentials
import Synchronization

/// An application that may ask for logins, or for tokens of its own (RFC 6749 §2).
struct IdentityClient: Codable, Sendable {
    var id: String
    var secret: String
    /// Compared whole (RFC 9700 §2.1).
    var redirectURIs: [String] = []
    /// What its own tokens say (`client_credentials`); without roles it may not have any.
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

/// What a person's tokens say, where it is not what follows from the address they log in with.
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

/// How the provider misbehaves.
struct IdentitySwitches: Codable, Sendable {
    enum Failure: String, Codable, Sendable {
        /// All is well.
        case none
        /// Errors as RFC 6749 has them.
        case serverError = "server_error"
        /// 503 to everything.
        case down
        /// Every answer takes `slowMilliseconds`.
        case slow
        /// No answer until the switch is another.
        case held
    }

    var failure: Failure?
    /// Where; everywhere unless given. A part of the path, for example `token`.
    var failureAt: String?
    var slowMilliseconds: Int?
    /// By how much the provider's clock is ahead.
    var clockSkewSeconds: Int?
    /// The configuration names no revocation endpoint.
    var hidesRevocation: Bool?
    /// The person is not asked whether the application may.
    var skipsConsent: Bool?
}

/// What the provider knows while it runs. A restart forgets logins that are under way, not the clients it is told of.
final class IdentityState: Sendable {
    /// A login that is under way.
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

    private struct Known {
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
    private let known = Mutex(Known())

    init(password: String, clients: [IdentityClient] = []) {
        self.password = password
        for client in clients { add(client) }
    }

    func add(_ client: IdentityClient) { known.withLock { $0.clients[client.id] = client } }
    func add(_ person: IdentityPerson) { known.withLock { $0.people[person.email.lowercased()] = person } }
    func client(_ id: String) -> IdentityClient? { known.withLock { $0.clients[id] } }
    func person(_ email: String) -> IdentityPerson? { known.withLock { $0.people[email.lowercased()] } }

    var switches: IdentitySwitches {
        get { known.withLock { $0.switches } }
        set { known.withLock { $0.switches = newValue } }
    }

    /// The provider's own idea of the time, in seconds since 1970.
    var now: Int { Int(Timestamp.now().secondsSinceEpoch) + (switches.clockSkewSeconds ?? 0) }

    func isRight(_ password: String, of email: String) -> Bool {
        guard email.contains("@") else { return false }
        return password == person(email)?.password ?? self.password
    }

    // MARK: What is under way

    enum Place { case login, code, refreshToken }

    /// Keeps a login under a new random name.
    func keep(_ login: Login, as place: Place) -> String {
        let name = Base64URL.text((0..<32).map { _ in UInt8.random(in: 0...255) })
        known.withLock { known in
            Self.with(place, &known) { logins in
                if logins.count >= Self.countMax { logins = logins.filter { $0.value.expires > Self.clock } }
                logins[name] = login
            }
        }
        return name
    }

    func find(_ name: String, as place: Place) -> Login? {
        var found: Login?
        known.withLock { known in Self.with(place, &known) { found = $0[name] } }
        return found.flatMap { $0.expires > Self.clock ? $0 : nil }
    }

    /// Each is used once.
    func take(_ name: String, as place: Place) -> Login? {
        var found: Login?
        known.withLock { known in Self.with(place, &known) { found = $0.removeValue(forKey: name) } }
        return found.flatMap { $0.expires > Self.clock ? $0 : nil }
    }

    /// How many there are, and an end of all of them.
    func count(of place: Place) -> Int {
        var count = 0
        known.withLock { known in Self.with(place, &known) { count = $0.count } }
        return count
    }
    func forget(_ place: Place) { known.withLock { known in Self.with(place, &known) { $0 = [:] } } }

    static var clock: Int64 { Timestamp.now().secondsSinceEpoch }

    private static func with(_ place: Place, _ known: inout Known, _ body: (inout [String: Login]) -> Void) {
        switch place {
        case .login: body(&known.logins)
        case .code: body(&known.codes)
        case .refreshToken: body(&known.refreshTokens)
        }
    }
}
