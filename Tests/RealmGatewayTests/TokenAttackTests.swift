import Crypto
import Essentials
import FoundationEssentials
import JWTKit
import Synchronization
import Tenants
import TestSupport
import Testing

@testable import Identity
@testable import Sandbox

/// Forged tokens: signed, but not with the environment's key.
@Suite(.ownThreads) struct TokenAttackTests {
    private static let now: Int64 = 1_800_000_000

    /// Two environments with a provider each, and the recorded key downloads.
    private final class World: Sendable {
        let providers: [IdentityProvider]
        let fetched = Mutex<[String]>([])

        init() async throws {
            var providers: [IdentityProvider] = []
            for name in ["http://one", "http://two"] {
                providers.append(
                    IdentityProvider(
                        issuer: name, audience: "fieldpost", keys: try await IdentityKeys.load(from: nil)))
            }
            self.providers = providers
        }

        func verifier() -> TokenVerifier {
            let environments = providers.enumerated().map { number, provider in
                EnvironmentIdentity(
                    environment: Int32(number + 1), issuer: provider.issuer, audience: "fieldpost",
                    jwksURL: provider.issuer + "/jwks")
            }
            return TokenVerifier(
                environments: { environments }, now: { TokenAttackTests.now },
                fetch: { url in
                    self.fetched.withLock { $0.append(url) }
                    guard let provider = self.providers.first(where: { url == $0.issuer + "/jwks" }) else {
                        throw TokenError.keyUnknown
                    }
                    return Array(try JSONEncoder().encode(["keys": try await provider.keys.publicKeys()]))
                })
        }

        /// Returns a token with any header and the first environment's claims, signed with any key.
        func token(header: String, key: P256.Signing.PrivateKey) throws -> String {
            let now = TokenAttackTests.now
            let claims = """
                {"iss":"http://one","sub":"1","aud":"fieldpost","exp":\(now + 600),"iat":\(now),
                "email":"boss@example.com","email_verified":true}
                """
            let signed = Base64URL.text(Array(header.utf8)) + "." + Base64URL.text(Array(claims.utf8))
            let signature = try key.signature(for: Array(signed.utf8)).rawRepresentation
            return signed + "." + Base64URL.text(signature)
        }

        func kid(of provider: Int) async throws -> String {
            try #require(await providers[provider].keys.keys.first { $0.algorithm == "ES256" }).kid
        }
    }

    /// A key in the token, or at an address in the token, is not trusted.
    @Test func keyInTheTokenIsNotTrusted() async throws {
        let world = try await World()
        let mine = P256.Signing.PrivateKey()
        let point = mine.publicKey.rawRepresentation
        let (x, y) = (Base64URL.text(point.prefix(32)), Base64URL.text(point.suffix(32)))
        let jwk = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"mine\",\"x\":\"\(x)\",\"y\":\"\(y)\"}"
        let kid = try await world.kid(of: 0)
        let headers: [(String, TokenError)] = [
            ("{\"alg\":\"ES256\",\"kid\":\"mine\",\"jwk\":\(jwk)}", .keyUnknown),
            ("{\"alg\":\"ES256\",\"kid\":\"\(kid)\",\"jwk\":\(jwk)}", .signatureWrong),
            ("{\"alg\":\"ES256\",\"kid\":\"mine\",\"jku\":\"http://evil/jwks\"}", .keyUnknown),
            ("{\"alg\":\"ES256\",\"kid\":\"\(kid)\",\"jku\":\"http://evil/jwks\"}", .signatureWrong),
            ("{\"alg\":\"ES256\",\"kid\":\"\(kid)\",\"x5u\":\"http://evil/certificate\"}", .signatureWrong),
            (
                "{\"alg\":\"ES256\",\"kid\":\"\(kid)\",\"crit\":[\"b64\"],\"b64\":false}",
                .malformed("critical extensions")
            ),
        ]
        for (header, error) in headers {
            let token = try world.token(header: header, key: mine)
            let verifier = world.verifier()
            await #expect(throws: error, "\(header)") { try await verifier.identity(of: token) }
        }
        #expect(Set(world.fetched.withLock { $0 }) == ["http://one/jwks"])
    }

    /// A `kid` is only compared with those of the provider's keys.
    @Test func kidIsOnlyAName() async throws {
        let world = try await World()
        let mine = P256.Signing.PrivateKey()
        let kids = [
            "../../../../dev/null", "/etc/passwd", "' OR '1'='1", "http://evil/jwks", "%00", "a\\u0000b", "",
            String(repeating: "k", count: 4_000), "file:///etc/passwd", "|id", "\\r\\nX-Injected: yes",
        ]
        let verifier = world.verifier()
        for kid in kids {
            let token = try world.token(header: "{\"alg\":\"ES256\",\"kid\":\"\(kid)\"}", key: mine)
            await #expect(throws: TokenError.keyUnknown, "\(kid.prefix(40))") { try await verifier.identity(of: token) }
        }
        // With any number of unknown names, the provider's keys are downloaded at a limited rate.
        #expect(world.fetched.withLock { $0 } == ["http://one/jwks"])
    }

    /// Another tenant's provider, with valid keys of its own, signs for this one.
    @Test func otherTenantsKeyIsRejected() async throws {
        let world = try await World()
        let theirs = try #require(await world.providers[1].keys.keys.first { $0.algorithm == "ES256" })
        let key = try P256.Signing.PrivateKey(pemRepresentation: theirs.pem)
        let verifier = world.verifier()
        for kid in [theirs.kid, try await world.kid(of: 0)] {
            let token = try world.token(header: "{\"alg\":\"ES256\",\"kid\":\"\(kid)\"}", key: key)
            await #expect(throws: TokenError.self) { try await verifier.identity(of: token) }
        }
        // The same claims, signed by their own provider, are valid.
        let own = try #require(await world.providers[0].keys.keys.first { $0.algorithm == "ES256" })
        let token = try world.token(
            header: "{\"alg\":\"ES256\",\"kid\":\"\(own.kid)\"}",
            key: try P256.Signing.PrivateKey(pemRepresentation: own.pem))
        #expect(try await verifier.identity(of: token).environment == 1)
    }
}
