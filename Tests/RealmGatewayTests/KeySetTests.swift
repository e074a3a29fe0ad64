import Essentials
import FoundationEssentials
import JWTKit
import Tenants
import TestSupport
import Testing

@testable import Identity
@testable import Sandbox

/// Providers that publish several keys with one `kid`, or without one.
@Suite(.ownThreads) struct KeySetTests {
    private static let now: Int64 = 1_800_000_000

    /// A published key, and its private key.
    private struct Pair: Sendable {
        var jwk: [String: String]
        let signers: JWTKeyCollection

        var json: String {
            "{" + jwk.map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",") + "}"
        }

        /// Returns the pair with other members; an empty one is omitted.
        func with(_ members: [String: String]) -> Pair {
            Pair(jwk: jwk.merging(members) { $1 }.filter { !$0.value.isEmpty }, signers: signers)
        }

        func token(kid: String?) async throws -> String {
            let now = Int(KeySetTests.now)
            let claims = IdentityClaims(
                iss: "http://idp", sub: "42", aud: "fieldpost", exp: now + 600, iat: now, email: "ana@example.com",
                emailVerified: true, name: "Ana")
            return try await signers.sign(claims, kid: kid.map { JWKIdentifier(string: $0) })
        }
    }

    /// Creates a pair of each kind.
    private static func pairs() async throws -> (elliptic: Pair, rsa: Pair) {
        let keys = try await IdentityKeys.load(from: nil)
        var pairs: [String: Pair] = [:]
        for (key, jwk) in zip(await keys.keys, try await keys.publicKeys()) {
            let signers = JWTKeyCollection()
            // With the one `kid`, and without: the first of a collection signs without one.
            if key.algorithm == "ES256" {
                await signers.add(ecdsa: try ES256PrivateKey(pem: key.pem), kid: "k")
            } else {
                await signers.add(rsa: try Insecure.RSA.PrivateKey(pem: key.pem), digestAlgorithm: .sha256, kid: "k")
            }
            pairs[key.algorithm] = Pair(jwk: jwk, signers: signers).with(["kid": "k"])
        }
        return (try #require(pairs["ES256"]), try #require(pairs["RS256"]))
    }

    private static func verifier(_ keys: [String]) -> TokenVerifier {
        let document = Array("{\"keys\":[\(keys.joined(separator: ","))]}".utf8)
        return TokenVerifier(
            environments: {
                [
                    EnvironmentIdentity(
                        environment: 1, issuer: "http://idp", audience: "fieldpost", jwksURL: "http://idp/jwks")
                ]
            }, now: { now }, fetch: { _ in document })
    }

    private static func permutations<Element>(_ elements: [Element]) -> [[Element]] {
        guard elements.count > 1 else { return [elements] }
        return elements.indices.flatMap { index in
            var rest = elements
            let first = rest.remove(at: index)
            return permutations(rest).map { [first] + $0 }
        }
    }

    @Test func keysWithTheSameKidVerifyInAnyOrder() async throws {
        let (elliptic, rsa) = try await Self.pairs()
        let (second, another) = try await Self.pairs()
        let encryption = rsa.with(["use": "enc", "alg": "RSA-OAEP"])
        let published = [
            elliptic, rsa, second.with(["alg": "", "use": ""]), another.with(["alg": "", "use": ""]),
            another.with(["use": "enc", "alg": "RS256"]),
        ]
        var tokens: [String] = []
        for pair in [elliptic, rsa, second, another] {
            tokens += [try await pair.token(kid: "k"), try await pair.token(kid: nil)]
        }
        for keys in Self.permutations(published.map(\.json)) {
            let verifier = Self.verifier(keys + [encryption.json, #"{"kty":"oct","kid":"k","k":"AAAA"}"#])
            for token in tokens { #expect(try await verifier.identity(of: token).subject == "42") }
        }
    }

    @Test func keysWithoutKidMatchAnyToken() async throws {
        let (elliptic, rsa) = try await Self.pairs()
        for keys in [[elliptic, rsa], [rsa, elliptic]] {
            let verifier = Self.verifier(keys.map { $0.with(["kid": ""]).json })
            for pair in [elliptic, rsa] {
                for kid in ["k", nil] {
                    #expect(try await verifier.identity(of: try await pair.token(kid: kid)).subject == "42")
                }
            }
        }
    }

    @Test func keysForOtherPurposesVerifyNothing() async throws {
        let (elliptic, rsa) = try await Self.pairs()
        let (stranger, _) = try await Self.pairs()
        let refused: [([Pair], Pair, TokenError)] = [
            ([elliptic, rsa.with(["use": "enc"])], rsa, .algorithmRefused("RS256")),
            ([elliptic, rsa.with(["alg": "PS256"])], rsa, .algorithmRefused("RS256")),
            ([elliptic, rsa.with(["alg": "RSA-OAEP"])], rsa, .algorithmRefused("RS256")),
            ([elliptic.with(["kid": "other"]), rsa.with(["kid": "other"])], rsa, .keyUnknown),
            ([elliptic, rsa], stranger, .signatureWrong),
        ]
        for (published, signer, error) in refused {
            for keys in Self.permutations(published.map(\.json)) {
                let token = try await signer.token(kid: "k")
                await #expect(throws: error) { try await Self.verifier(keys).identity(of: token) }
            }
        }
        // A key for encryption only.
        let wrapping = String(rsa.json.dropLast()) + #","key_ops":["wrapKey"]}"#
        let token = try await rsa.token(kid: "k")
        await #expect(throws: TokenError.algorithmRefused("RS256")) {
            try await Self.verifier([elliptic.json, wrapping]).identity(of: token)
        }
    }
}
