import Crypto
import Foundation
import HTTPClient
import JWTKit
import Logging
import Model
import NIOPosix
import ObjectStore
import Postgres
import Secrets
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import HTTPServer
@testable import Identity
@testable import RealmGateway
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// Running gateways on their own database.
struct GatewayFixture: Sendable {
    let database: String
    let environment = EnvironmentID(rawValue: 1)
    let gateways: [Gateway]
    let ports: [Int]
    let keys: TestKeys
    let client = Client()

    static let issuer = "https://idp.example.test"
    static let audience = "fieldpost"
    static let secretKey = Data((0..<32).map { UInt8($0) }).base64EncodedString()

    func url(_ path: String, gateway: Int = 0) -> String { "http://127.0.0.1:\(ports[gateway])\(path)" }

    /// Runs `body` with a connection to the gateways' database. It blocks the thread, which tests may do.
    func withDatabase<Success: Sendable>(
        _ body: @Sendable (inout Connection) throws -> Success
    ) throws -> Success {
        var connection = try Connection(database)
        return try body(&connection)
    }

    /// Returns a realm's number.
    func realm(_ path: RealmPath) throws -> Int32 {
        try withDatabase { connection in
            var directory = RealmDirectory()
            return try #require(try directory.id(of: path, in: environment, create: true, on: &connection))
        }
    }

    /// Writes objects like a service.
    func write(_ fill: @Sendable (inout WriteBatch) throws -> Void) throws {
        try withDatabase { connection in
            var batch = WriteBatch(environment: environment)
            try fill(&batch)
            _ = try batch.commit(on: &connection)
        }
    }
}

extension GatewayLimits {
    /// Pages of few objects, so that short tests have several.
    static let small: GatewayLimits = {
        var limits = GatewayLimits()
        limits.pageCountMax = 50
        limits.changeCountMax = 20
        limits.catchUpCountMax = 150
        return limits
    }()
}

/// Starts gateways, runs `body`, and stops them.
///
/// - Parameter database: The database of earlier gateways; a new one by default.
@discardableResult
func withGateway<Success: Sendable>(
    count: Int = 1, at database: String? = nil, limits: GatewayLimits = GatewayLimits(),
    http: HTTPLimits = HTTPLimits(), proxyCount: Int = 0,
    secretKeys: [String] = [GatewayFixture.secretKey], fetch: (@Sendable (String) async throws -> [UInt8])? = nil,
    _ body: @Sendable (GatewayFixture) async throws -> Success
) async throws -> Success {
    let database = try database ?? makeGatewayDatabase()
    let keys = try await TestKeys()
    let jwks = keys.jwks
    let health = Health(stallMax: .seconds(60))
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let environment = ComponentEnvironment(
        logger: logger, health: health, eventLoops: MultiThreadedEventLoopGroup.singleton)
    var gateways: [Gateway] = []
    var services: [any Service] = []
    let (started, announce) = AsyncStream.makeStream(of: (Int, Int).self)
    for index in 0..<count {
        let gateway = try await Gateway(
            database: database, limits: limits, tokens: TokenVerifier.Limits(),
            clients: ClientAddress(proxyCount: proxyCount), secrets: SecretBox(secretKeys), logger: logger,
            fetch: fetch ?? { _ in jwks })
        gateways.append(gateway)
        services += gateway.components(host: "127.0.0.1", port: 0, limits: http) { announce.yield((index, $0)) }
            .map { $0.make(environment) }
    }
    let group = ServiceGroup(services: services, logger: logger)
    let running = Task { try await group.run() }
    var ports: [Int: Int] = [:]
    for await (index, port) in started {
        ports[index] = port
        if ports.count == count { break }
    }
    let fixture = GatewayFixture(
        database: database, gateways: gateways, ports: (0..<count).compactMap { ports[$0] }, keys: keys)
    let outcome: Result<Success, any Error>
    do { outcome = .success(try await body(fixture)) } catch { outcome = .failure(error) }
    fixture.client.shutDown()
    await group.triggerGracefulShutdown()
    _ = try? await running.value
    for gateway in gateways { gateway.close() }
    return try outcome.get()
}

/// A database with an environment and its provider.
private func makeGatewayDatabase() throws -> String {
    let database = try makeFoundationDatabase()
    var connection = try Connection(database)
    try EnvironmentRows(
        id: 1, name: "test",
        provider: .init(issuer: GatewayFixture.issuer, audience: GatewayFixture.audience, jwksURL: "http://unused"),
        domains: ["example.com"]
    ).insert(on: &connection)
    try connection.run("INSERT INTO realm.relay VALUES (1, 1, 1, 1, 9000000000)")
    return database
}

/// An identity provider's keys.
struct TestKeys: Sendable {
    private let collection = JWTKeyCollection()
    let jwks: [UInt8]

    struct Claims: JWTPayload {
        var iss = GatewayFixture.issuer
        var sub: String
        var aud = GatewayFixture.audience
        var exp: Int
        var email: String
        var email_verified = true
        func verify(using algorithm: some JWTAlgorithm) {}
    }

    /// A client-credentials token: a client id, no e-mail address.
    struct ClientClaims: JWTPayload {
        var iss = GatewayFixture.issuer
        var sub: String
        var aud = GatewayFixture.audience
        var exp: Int
        var azp: String?
        var nonce: String?
        var auth_time: Int?
        var scope: String?
        var email: String?
        var email_verified: Bool?
        var tid: String?
        var preferred_username: String?
        func verify(using algorithm: some JWTAlgorithm) {}
    }

    init() async throws {
        let key = P256.Signing.PrivateKey()
        let x963 = key.publicKey.x963Representation
        func encoded(_ bytes: Data) -> String {
            bytes.base64EncodedString().replacingOccurrences(of: "+", with: "-")
                .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
        }
        let (x, y) = (encoded(x963[x963.startIndex + 1..<x963.startIndex + 33]), encoded(x963.suffix(32)))
        let text = """
            {"keys":[{"kty":"EC","crv":"P-256","kid":"1","use":"sig","alg":"ES256","x":"\(x)","y":"\(y)"}]}
            """
        jwks = Array(text.utf8)
        await collection.add(ecdsa: try ES256PrivateKey(pem: key.pemRepresentation), kid: "1")
    }

    func clientToken(
        _ client: String?, subject: String, email: String? = nil, _ edit: (inout ClientClaims) -> Void = { _ in }
    ) async throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        var claims = ClientClaims(
            sub: subject, exp: now + 600, azp: client, email: email, email_verified: email.map { _ in true })
        edit(&claims)
        return try await collection.sign(claims, kid: "1")
    }

    func token(_ email: String, subject: String? = nil, expiresIn: Int = 600) async throws -> String {
        let now = Int(Date().timeIntervalSince1970)
        return try await collection.sign(
            Claims(sub: subject ?? email, exp: now + expiresIn, email: email), kid: "1")
    }
}
