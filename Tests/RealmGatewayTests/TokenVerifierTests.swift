import Crypto
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import JWTKit
import Synchronization
import Tenants
import TestSupport
import Testing

@testable import Identity
@testable import RealmGateway
@testable import Sandbox

/// A provider and a verifier that share a clock, without a network between them.
private final class Setup: Sendable {
    static let start: Int64 = 1_800_000_000

    let provider: IdentityProvider
    let clock = Atomic<Int64>(Setup.start)
    let fetchCount = Atomic<Int>(0)
    let isUnavailable = Atomic<Bool>(false)
    let environments = Mutex<[EnvironmentIdentity]>([
        EnvironmentIdentity(environment: 1, issuer: "http://idp", audience: "fieldpost", jwksURL: "http://idp/jwks")
    ])

    init() async throws {
        provider = IdentityProvider(
            issuer: "http://idp", audience: "fieldpost", keys: try await IdentityKeys.load(from: nil))
    }

    func verifier(_ limits: TokenVerifier.Limits = .init()) -> TokenVerifier {
        TokenVerifier(
            limits: limits, environments: { self.environments.withLock { $0 } },
            now: { self.clock.load(ordering: .relaxed) },
            fetch: { _ in
                self.fetchCount.add(1, ordering: .relaxed)
                if self.isUnavailable.load(ordering: .relaxed) { throw Unavailable() }
                return Array(try JSONEncoder().encode(["keys": try await self.provider.keys.publicKeys()]))
            })
    }

    func token(
        _ algorithm: String = "ES256", change: (inout IdentityClaims) -> Void = { _ in }
    ) async throws -> String {
        let now = Int(Setup.start)
        var claims = IdentityClaims(
            iss: "http://idp", sub: "42", aud: "fieldpost", exp: now + 600, iat: now, email: "Ana@example.com",
            emailVerified: true, name: "Ana")
        change(&claims)
        return try await provider.keys.sign(claims, with: algorithm)
    }

    struct Unavailable: Error {}
}

private func base64(_ text: String) -> String { Base64URL.text(Array(text.utf8)) }

/// Returns a token with `token`'s claims and another header, signed by `sign`.
private func forged(_ token: String, header: String, sign: (String) throws -> String) rethrows -> String {
    let signed = base64(header) + "." + token.split(separator: ".")[1]
    return signed + "." + (try sign(signed))
}

@Suite(.ownThreads) struct TokenVerifierTests {
    @Test(arguments: ["ES256", "RS256"]) func validTokenIdentifiesItsPerson(algorithm: String) async throws {
        let setup = try await Setup()
        let identity = try await setup.verifier().identity(of: try await setup.token(algorithm))
        #expect(
            identity
                == Identity(
                    environment: 1, issuer: "http://idp", subject: "42", email: "ana@example.com", name: "Ana",
                    expires: Setup.start + 600))
    }

    static let badClaims: [(TokenError, @Sendable (inout IdentityClaims) -> Void)] = [
        (.expired, { $0.exp = Int(Setup.start) - 61 }),
        (.notYetValid, { $0.iat = Int(Setup.start) + 61 }),
        (.issuerUnknown, { $0.iss = "http://other" }),
        (.audienceWrong, { $0.aud = "other" }),
        (.emailUnverified(.claimFalse(.emailVerified)), { $0.emailVerified = false }),
        (.emailUnverified(.claimMissing(.emailVerified)), { $0.emailVerified = nil }),
        (.emailMissing, { $0.email = "" }),
        (.malformed("sub"), { $0.sub = "" }),
        (.malformed("U+0000"), { $0.sub = "4\u{0}2" }),
        (.malformed("U+0000"), { $0.name = "An\u{0}a" }),
        (.malformed("U+0000"), { $0.email = "a\u{0}na@example.com" }),
    ]

    @Test(arguments: 0..<badClaims.count) func invalidClaimIsRejected(index: Int) async throws {
        let setup = try await Setup()
        let (error, change) = Self.badClaims[index]
        let token = try await setup.token(change: change)
        await #expect(throws: error) { try await setup.verifier().identity(of: token) }
    }

    @Test func clockSkewIsTolerated() async throws {
        let setup = try await Setup()
        let early = try await setup.token { $0.exp = Int(Setup.start) - 59 }
        let late = try await setup.token { $0.iat = Int(Setup.start) + 59 }
        for token in [early, late] { _ = try await setup.verifier().identity(of: token) }
    }

    @Test func cachedTokenExpires() async throws {
        let setup = try await Setup()
        let verifier = setup.verifier()
        let token = try await setup.token()
        _ = try await verifier.identity(of: token)
        setup.clock.store(Setup.start + 661, ordering: .relaxed)
        await #expect(throws: TokenError.expired) { try await verifier.identity(of: token) }
    }

    @Test func removalOfAnEnvironmentInvalidatesCachedTokens() async throws {
        let setup = try await Setup()
        let verifier = setup.verifier()
        let token = try await setup.token()
        _ = try await verifier.identity(of: token)
        setup.environments.withLock { $0 = [] }
        await #expect(throws: TokenError.issuerUnknown) { try await verifier.identity(of: token) }
    }

    @Test func tokenWithoutSignatureIsRejected() async throws {
        let setup = try await Setup()
        for name in ["none", "None", "NONE"] {
            let token = forged(try await setup.token(), header: "{\"alg\":\"\(name)\"}") { _ in "" }
            await #expect(throws: TokenError.algorithmRefused(name)) { try await setup.verifier().identity(of: token) }
        }
    }

    /// Algorithm confusion: the public key used as a shared secret.
    @Test func publicKeyIsNotASharedSecret() async throws {
        let setup = try await Setup()
        let key = try #require(await setup.provider.keys.keys.first { $0.algorithm == "RS256" })
        let pem = try Insecure.RSA.PrivateKey(pem: key.pem).publicKey.pemRepresentation
        let header = "{\"alg\":\"HS256\",\"kid\":\"\(key.kid)\"}"
        let token = forged(try await setup.token(), header: header) { signed in
            Base64URL.text(
                Array(
                    HMAC<SHA256>.authenticationCode(
                        for: Array(signed.utf8), using: SymmetricKey(data: Array(pem.utf8)))))
        }
        await #expect(throws: TokenError.algorithmRefused("HS256")) { try await setup.verifier().identity(of: token) }
    }

    @Test func keyVerifiesOnlyItsOwnAlgorithm() async throws {
        let setup = try await Setup()
        let kid = try #require(await setup.provider.keys.keys.first { $0.algorithm == "ES256" }).kid
        let header = "{\"alg\":\"RS256\",\"kid\":\"\(kid)\"}"
        let token = forged(try await setup.token(), header: header) { _ in base64("signature") }
        await #expect(throws: TokenError.algorithmRefused("RS256")) { try await setup.verifier().identity(of: token) }
    }

    @Test(arguments: ["ES256", "RS256"]) func changedClaimsAreRejected(algorithm: String) async throws {
        let setup = try await Setup()
        let mine = try await setup.token(algorithm).split(separator: ".")
        let other = try await setup.token(algorithm) { $0.email = "boss@example.com" }.split(separator: ".")
        let token = "\(mine[0]).\(other[1]).\(mine[2])"
        await #expect(throws: TokenError.signatureWrong) { try await setup.verifier().identity(of: token) }
    }

    @Test func malformedTokenIsRejected() async throws {
        let setup = try await Setup()
        let good = try await setup.token()
        let texts = [
            "", ".", "..", "a.b.c", "e30.e30.e30", good + ".x", good + "=", "\u{0}", "🙂.🙂.🙂", "Bearer \(good)",
            String(repeating: "a", count: 8193),
            forged(good, header: "{\"alg\":\"ES256\",\"crit\":[\"b64\"]}") { _ in "" },
        ]
        for text in texts {
            let error = await #expect(throws: TokenError.self) { try await setup.verifier().identity(of: text) }
            guard case .malformed = error else {
                Issue.record("\(text.prefix(40)): \(String(describing: error))")
                continue
            }
        }
        #expect(setup.fetchCount.load(ordering: .relaxed) == 0)
    }

    @Test func newKeyIsFetchedAndOldTokensStayValid() async throws {
        let setup = try await Setup()
        let verifier = setup.verifier()
        let old = try await setup.token()
        _ = try await verifier.identity(of: old)
        try await setup.provider.keys.rotate()
        let new = try await setup.token()
        await #expect(throws: TokenError.keyUnknown) { try await verifier.identity(of: new) }
        setup.clock.add(10, ordering: .relaxed)
        for token in [new, old, try await setup.token("RS256")] { _ = try await verifier.identity(of: token) }
        #expect(setup.fetchCount.load(ordering: .relaxed) == 2)
    }

    @Test func manyUnknownKeysCauseOneFetch() async throws {
        let setup = try await Setup()
        let verifier = setup.verifier()
        let good = try await setup.token()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                let token = forged(good, header: "{\"alg\":\"ES256\",\"kid\":\"\(number)\"}") { _ in "AAAA" }
                group.addTask {
                    await #expect(throws: TokenError.keyUnknown) { try await verifier.identity(of: token) }
                }
            }
        }
        #expect(setup.fetchCount.load(ordering: .relaxed) == 1)
    }

    @Test func cachedKeysWorkWhileTheProviderIsUnavailable() async throws {
        let setup = try await Setup()
        let verifier = setup.verifier()
        _ = try await verifier.identity(of: try await setup.token())
        setup.isUnavailable.store(true, ordering: .relaxed)
        setup.clock.add(7200, ordering: .relaxed)
        let later = try await setup.token { $0.exp = Int(Setup.start) + 10_000 }
        _ = try await verifier.identity(of: later)
        while setup.fetchCount.load(ordering: .relaxed) < 2 { await Task.yield() }
        _ = try await verifier.identity(of: try await setup.token("RS256") { $0.exp = Int(Setup.start) + 10_000 })
        #expect(setup.fetchCount.load(ordering: .relaxed) == 2)
    }

    /// The provider rotated its keys and is unavailable: the token may be valid.
    @Test func unavailableNewKeyIsAServerError() async throws {
        let setup = try await Setup()
        let verifier = setup.verifier()
        let old = try await setup.token()
        _ = try await verifier.identity(of: old)
        try await setup.provider.keys.rotate()
        setup.isUnavailable.store(true, ordering: .relaxed)
        setup.clock.add(10, ordering: .relaxed)
        let new = try await setup.token()
        let error = await #expect(throws: TokenError.self) { try await verifier.identity(of: new) }
        #expect(error?.problem.status == .serviceUnavailable)
        _ = try await verifier.identity(of: old)
        setup.isUnavailable.store(false, ordering: .relaxed)
        setup.clock.add(10, ordering: .relaxed)
        _ = try await verifier.identity(of: new)
    }

    @Test func missingKeysAreAServerError() async throws {
        let setup = try await Setup()
        setup.isUnavailable.store(true, ordering: .relaxed)
        let token = try await setup.token()
        let verifier = setup.verifier()
        let error = await #expect(throws: TokenError.self) { try await verifier.identity(of: token) }
        #expect(error?.problem.status == .serviceUnavailable)
    }

    @Test func cacheIsLimited() async throws {
        let setup = try await Setup()
        let environment = try #require(setup.environments.withLock { $0.first })
        let identity = Identity(environment: 1, issuer: "", subject: "", email: "", name: nil, expires: 0)
        var cache = TokenCache(countMax: 100)
        let used = SHA256.hash(data: Array("used".utf8))
        cache.add(used, identity, environment)
        for number in 0..<1000 {
            cache.add(SHA256.hash(data: Array("\(number)".utf8)), identity, environment)
            #expect(cache.find(used) != nil)
            #expect(cache.count <= 100)
        }
    }

    @Test func challengeIsEscaped() {
        let problem = TokenError.malformed("\"\r\nX: y").problem
        #expect(problem.status == .unauthorized)
        #expect(
            problem.headers[.wwwAuthenticate]
                == "Bearer error=\"invalid_token\", error_description=\"The token is not valid here\"")
    }
}
