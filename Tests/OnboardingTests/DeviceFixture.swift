import Foundation
import HTTPClient
import Identity
import Synchronization
import Tenants
import TestSupport
import Testing

@testable import Onboarding
@testable import Sandbox

/// A clock that tests can advance.
final class TestClock: Sendable {
    private let ahead = Atomic<Int64>(0)

    var aheadSeconds: Int64 { ahead.load(ordering: .relaxed) }
    var now: Int64 { TokenCheck.now() + aheadSeconds }
    func advance(seconds: Int64) { ahead.add(seconds, ordering: .relaxed) }
}

extension OnboardingFixture {
    /// A response of `POST /v1/token`.
    struct RenewalResponse: Sendable {
        let status: Int
        let json: [String: String]
        let retryAfter: Int?

        var type: String? { json["type"]?.replacingOccurrences(of: "urn:fieldpost:problem:", with: "") }

        subscript(_ name: String) -> String {
            get throws { try #require(json[name], "\(status) \(json)") }
        }
    }

    func renew(_ credential: String, instance: Int = 0, address: String = "192.0.2.1") async throws -> RenewalResponse {
        let response = try await client.send(
            Request(
                "POST", url("/v1/token", instance: instance),
                headers: [("Content-Type", "application/json"), ("X-Forwarded-For", address)],
                body: Array(try JSONSerialization.data(withJSONObject: ["credential": credential])),
                totalMax: .seconds(40)))
        let json = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any] ?? [:]
        return RenewalResponse(
            status: response.status, json: json.compactMapValues { $0 as? String },
            retryAfter: response.headers["Retry-After"].flatMap { Int($0) })
    }

    /// Sends `POST /v1/logout`.
    func logOut(_ credential: String) async throws -> Int {
        try await client.send(
            Request(
                "POST", url("/v1/logout"), headers: [("Content-Type", "application/json")],
                body: Array(try JSONSerialization.data(withJSONObject: ["credential": credential])))
        ).status
    }

    /// Advances the clocks of onboarding and the provider.
    func advance(seconds: Int64) {
        clock.advance(seconds: seconds)
        identity.switches.clockSkewSeconds = Int(clock.aheadSeconds)
    }

    /// Returns a token verifier like the device API's, with the same clock.
    func verifier() -> TokenVerifier {
        let identity = EnvironmentIdentity(
            environment: 1, issuer: issuer, audience: Self.audience, jwksURL: issuer + "/jwks")
        let keys = JWKS(client: client)
        return TokenVerifier(environments: { [identity] }, now: { clock.now }, fetch: { try await keys.fetch($0) })
    }

    /// Runs `fieldpost environment …`.
    func command(_ arguments: String...) async throws -> CommandResult {
        let variables = [
            "FIELDPOST_DATABASE_URL": database,
            "FIELDPOST_SECRET_KEYS": Data((0..<32).map { UInt8($0) }).base64EncodedString(),
        ]
        return try await withOwnThread { try fieldpost(["environment"] + arguments, environment: variables) }
    }
}

extension TestDevice {
    /// Settings of an environment that requests refresh tokens.
    static let withRefreshTokens = "scopes = '{openid,email,offline_access}'"

    /// Registers a device and logs in; returns its token and credential.
    static func logIn(
        _ fixture: OnboardingFixture, _ email: String = OnboardingFixture.known
    ) async throws -> (token: String, credential: String) {
        let device = try await TestDevice(fixture, email)
        let socket = try await device.connect()
        let page = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL, as: email)
        #expect(page.status == 200, "\(page.body)")
        let token = try await socket.event("token")
        return (
            try #require(token.payload["access_token"]), try #require(token.payload["credential"], "no credential")
        )
    }
}
