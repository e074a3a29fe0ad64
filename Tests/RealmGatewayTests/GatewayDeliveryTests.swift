import Foundation
import HTTPClient
import Model
import Postgres
import Tenants
import TestSupport
import Testing

@testable import RealmGateway

/// The channels for notices that a person can choose.
@Suite(.ownThreads) struct GatewayDeliveryTests {
    @Test func configuredChannelsAreListed() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            func offer() async throws -> String {
                GatewayResponse(try await fixture.client.send(ana.request("GET", "/v1/deliveries"))).body
            }
            #expect(try await offer() == #"{"email":false,"native":[],"webhookHosts":[]}"#)
            try fixture.withDatabase { connection in
                var settings = DeliverySettings(environment: EnvironmentID(rawValue: 1))
                settings.webhookHosts = ["hooks.example.com"]
                settings.webhookSecret = Bytea([1])
                (settings.mailServer, settings.mailFrom) = ("smtps://mail.example.com", "a@example.com")
                (settings.pushContact, settings.pushPublicKey, settings.pushKey) = ("https://a.b", "BCV", Bytea([2]))
                settings.fcm = .init(project: "p", account: Bytea([3]), server: DeliverySettings.FCM.defaultServer)
                _ = try connection.run(settings.save())
            }
            let offered = #"{"email":true,"native":["fcm"],"pushKey":"BCV","webhookHosts":["hooks.example.com"]}"#
            #expect(try await offer() == offered)
            // While a database still has the schema of the previous release.
            try fixture.withDatabase { connection in
                _ = try connection.run("ALTER TABLE backend.delivery DROP COLUMN fcm_server")
            }
            #expect(try await offer() == #"{"email":false,"native":[],"webhookHosts":[]}"#)
        }
    }
}
