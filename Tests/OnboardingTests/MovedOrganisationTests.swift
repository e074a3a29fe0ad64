import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import Onboarding

/// An organisation that was transferred to another installation.
@Suite(.ownThreads) struct MovedOrganisationTests {
    private static let url = "https://there.example"

    /// As `fieldpost environment cut-over` has it.
    private func leave(_ fixture: OnboardingFixture) throws {
        try fixture.withDatabase { connection in
            _ = try connection.run([
                """
                INSERT INTO realm.move (environment_id, move_id, state, moved_to)
                VALUES (1, gen_random_uuid(), 'left', \(Self.url))
                """,
                """
                SELECT realm.hold(1, name::regclass) FROM unnest('{realm.environment,store.object,access.person,
                    onboarding.refresh_token,access.audit}'::text[]) AS t (name)
                """,
            ])
        }
    }

    @Test func devicesGetNewBaseURL() async throws {
        try await withOnboarding(settings: TestDevice.withRefreshTokens) { fixture in
            let credential = try await TestDevice.logIn(fixture).credential
            let device = try await TestDevice(fixture)
            try leave(fixture)
            let response = try await TestDevice.register(fixture, OnboardingFixture.known)
            let json = try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
            #expect(response.status == 421 && json["baseURL"] as? String == Self.url)
            #expect(json["type"] as? String == "urn:fieldpost:problem:environment-moved")
            let renewed = try await fixture.renew(credential)
            #expect(renewed.status == 421 && renewed.type == "environment-moved")
            #expect(renewed.json["baseURL"] == Self.url)
            // A login in progress must start over.
            let page = try await TestBrowser(fixture: fixture).logIn(at: device.loginURL)
            #expect(page.status == 400, "\(page.body)")
        }
    }

    /// A session of the transferred environment that waits for its realm does not block others.
    @Test func movedEnvironmentDoesNotBlockOthers() async throws {
        try await withOnboarding { fixture in
            try leave(fixture)
            try fixture.withDatabase { connection in
                for id in 2...4 {
                    try EnvironmentRows(
                        id: Int32(id), name: "other-\(id)", provider: .init(issuer: "http://127.0.0.1/\(id)"),
                        domains: ["other\(id).example"], backend: .init(), people: ["bo@other\(id).example": [:]]
                    ).insert(on: &connection)
                }
                for id in 1...4 {
                    let email = id == 1 ? OnboardingFixture.known : "bo@other\(id).example"
                    _ = try connection.run(
                        """
                        INSERT INTO onboarding.session (id, environment_id, email, realms_id, expires_at,
                            device_address, device_name, wants_realm)
                        VALUES (\(Capability().key), \(Int32(id)), \(email), gen_random_uuid(),
                            now() + interval '1 hour', '', '', true)
                        """)
                }
            }
            try await eventually("the others' realms are registered") {
                try fixture.count("SELECT count(*) FROM onboarding.session WHERE wants_realm") == 1
            }
        }
    }
}
