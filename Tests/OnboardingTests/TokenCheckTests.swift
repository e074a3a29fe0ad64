import Crypto
import Essentials
import Foundation
import HTTPClient
import Identity
import JWTKit
import Model
import Postgres
import Tenants
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// Forged ID tokens, with keys fetched from the emulated provider.
@Suite(.ownThreads) struct TokenCheckTests {
    private struct Login {
        let check: TokenCheck
        let pending: SessionStore.PendingLogin
        let metadata: ProviderMetadata
        let claims: IdentityClaims
        let access: String
    }

    private static let nonce = "the-nonce"

    private func login(_ fixture: OnboardingFixture) async throws -> Login {
        let organisation = try fixture.withDatabase { connection in
            let email = try #require(EmailAddress(OnboardingFixture.known))
            guard
                case .organisation(let organisation, _) = try Organisation.find(email, fixture.secrets, on: &connection)
            else { throw CancellationError() }
            return organisation
        }
        let metadata = try await OpenIDProvider(client: fixture.client).discover(fixture.issuer)
        let now = Int(Date().timeIntervalSince1970)
        var claims = IdentityClaims(
            iss: fixture.issuer, sub: "ana", aud: OnboardingFixture.clientID, exp: now + 600, iat: now,
            email: OnboardingFixture.known, emailVerified: true)
        claims.nonce = Self.nonce
        var access = claims
        access.aud = OnboardingFixture.audience
        return Login(
            check: TokenCheck(keys: JWKS(client: fixture.client), refetchMin: .zero),
            pending: SessionStore.PendingLogin(
                session: Bytea([1]), state: Bytea([]), email: try #require(EmailAddress(OnboardingFixture.known)),
                organisation: organisation, nonce: Self.nonce, sealedVerifier: Bytea([]), deviceAddress: "",
                deviceName: ""),
            metadata: metadata, claims: claims, access: try await fixture.keys.sign(access, with: "ES256"))
    }

    private func tokens(_ idToken: String?, _ access: String) throws -> ProviderTokens {
        var json = ["access_token": access]
        json["id_token"] = idToken
        return try JSONDecoder().decode(ProviderTokens.self, from: try JSONEncoder().encode(json))
    }

    @Test func providerTokenIsAccepted() async throws {
        try await withOnboarding { fixture in
            let login = try await login(fixture)
            for algorithm in ["ES256", "RS256"] {
                let token = try await fixture.keys.sign(login.claims, with: algorithm)
                let accepted = try await login.check.accept(
                    try tokens(token, login.access), for: login.pending, login.metadata)
                #expect(accepted.identity.subject == "ana" && accepted.token == login.access)
            }
        }
    }

    @Test func wrongClaimsAreRejected() async throws {
        let changes: [(String, @Sendable (inout IdentityClaims) -> Void)] = [
            ("another nonce", { $0.nonce = "other" }), ("no nonce", { $0.nonce = nil }),
            ("another audience", { $0.aud = "other" }), ("the device API's audience", { $0.aud = "fieldpost" }),
            ("another issuer", { $0.iss += "x" }), ("expired", { $0.exp = $0.iat - 120 }),
            ("from the future", { $0.iat += 600 }), ("another party", { $0.authorizedParty = "other" }),
            ("no address", { $0.email = nil }), ("unverified", { $0.emailVerified = false }),
            ("verification missing", { $0.emailVerified = nil }),
            ("another address", { $0.email = "bo@example.com" }),
            ("the address and more", { $0.email = "ana@example.com.evil" }),
            ("a homograph", { $0.email = "\u{FF41}na@example.com" }), ("no subject", { $0.sub = "" }),
        ]
        try await withOnboarding { fixture in
            let login = try await login(fixture)
            for (label, change) in changes {
                var claims = login.claims
                change(&claims)
                let token = try await fixture.keys.sign(claims, with: "ES256")
                await #expect(throws: LoginProblem.self, "\(label)") {
                    _ = try await login.check.accept(
                        try tokens(token, login.access), for: login.pending, login.metadata)
                }
            }
            await #expect(throws: LoginProblem.tokenRefused("no ID token")) {
                _ = try await login.check.accept(try tokens(nil, login.access), for: login.pending, login.metadata)
            }
            // Another person's access token is not combined with Ana's ID token.
            var other = login.claims
            (other.aud, other.sub) = (OnboardingFixture.audience, "bo")
            let good = try await fixture.keys.sign(login.claims, with: "ES256")
            let foreign = try await fixture.keys.sign(other, with: "ES256")
            await #expect(throws: LoginProblem.self) {
                _ = try await login.check.accept(try tokens(good, foreign), for: login.pending, login.metadata)
            }
        }
    }

    @Test func forgedSignaturesAreRejected() async throws {
        try await withOnboarding { fixture in
            let login = try await login(fixture)
            let good = try await fixture.keys.sign(login.claims, with: "ES256")
            let parts = good.split(separator: ".").map(String.init)
            let kid = try #require(await fixture.keys.keys.first { $0.algorithm == "ES256" }).kid
            let mine = P256.Signing.PrivateKey()
            func signed(_ header: String) throws -> String {
                let text = Base64URL.text(Array(header.utf8)) + "." + parts[1]
                return text + "." + Base64URL.text(Array(try mine.signature(for: Data(text.utf8)).rawRepresentation))
            }
            let point = mine.publicKey.rawRepresentation
            let jwk =
                "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"\(Base64URL.text(Array(point.prefix(32))))\","
                + "\"y\":\"\(Base64URL.text(Array(point.suffix(32))))\"}"
            // The provider's public keys, used as a shared secret.
            let published = try JSONEncoder().encode(["keys": try await fixture.keys.publicKeys()])
            func shared(_ secret: Data, _ header: String) -> String {
                let text = Base64URL.text(Array(header.utf8)) + "." + parts[1]
                let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: SymmetricKey(data: secret))
                return text + "." + Base64URL.text(Array(code))
            }
            let forged: [(String, String)] = [
                ("no signature", Base64URL.text(Array(#"{"alg":"none"}"#.utf8)) + "." + parts[1] + "."),
                ("None", Base64URL.text(Array(#"{"alg":"nOnE"}"#.utf8)) + "." + parts[1] + "."),
                ("another key under the same kid", try signed(#"{"alg":"ES256","kid":"\#(kid)"}"#)),
                ("a key in the header", try signed(#"{"alg":"ES256","kid":"\#(kid)","jwk":\#(jwk)}"#)),
                (
                    "the address of keys in the header",
                    try signed(#"{"alg":"ES256","kid":"\#(kid)","jku":"http://127.0.0.1:1/jwks"}"#)
                ),
                ("a kid that is a path", try signed(#"{"alg":"ES256","kid":"../../../dev/null"}"#)),
                ("a kid that is SQL", try signed(#"{"alg":"ES256","kid":"x' UNION SELECT 'y"}"#)),
                ("no kid", try signed(#"{"alg":"ES256"}"#)),
                ("the published keys as a secret", shared(published, #"{"alg":"HS256","kid":"\#(kid)"}"#)),
                ("an empty secret", shared(Data(), #"{"alg":"HS256","kid":"\#(kid)"}"#)),
                ("changed claims", parts[0] + "." + Base64URL.text(Array("{}".utf8)) + "." + parts[2]),
                ("an RSA algorithm", try signed(#"{"alg":"RS256","kid":"\#(kid)"}"#)),
            ]
            for (label, token) in forged {
                await #expect(throws: LoginProblem.self, "\(label)") {
                    _ = try await login.check.accept(
                        try tokens(token, login.access), for: login.pending, login.metadata)
                }
            }
        }
    }

    /// Discovery with another issuer, or an unusable endpoint.
    @Test func discoveryOfAnotherIssuerIsRejected() async throws {
        try await withOnboarding { fixture in
            let provider = OpenIDProvider(client: fixture.client)
            let other = "http://127.0.0.1:\(fixture.identityPort)/other"
            await #expect(throws: ProviderFailure.self) {
                _ = try await provider.discover(
                    fixture.issuer, at: other + "/.well-known/openid-configuration")
            }
        }
        for url in ["http://example.com/x", "ftp://example.com", "https://a@b.example", "javascript:alert(1)", "/x"] {
            #expect(!OpenIDProvider.isUsable(url), "\(url)")
        }
    }
}
