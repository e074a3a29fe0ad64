import Foundation
import Model
import Postgres
import Tenants
import TestSupport
import Testing

@testable import Fieldpost

@Suite(.ownThreads) struct NativePushMigrationTests {
    private let schema = projectFolder.appendingPathComponent("deploy/schema").path

    /// 031: waiting deliveries stay, and the channels of native push are added.
    @Test func migrationAddsNativePush() throws {
        let conninfo = try TestServer.shared.makeDatabase()
        var connection = try Connection(conninfo)
        _ = try Migration.run(Array(try SchemaFile.read(schema).prefix(30)), on: &connection)
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
            INSERT INTO backend.delivery (environment_id, push_contact, push_public_key, push_key)
            VALUES (1, 'mailto:a@b.c', 'k', 'x');
            INSERT INTO delivery.shipment (environment_id, realm_id, notice_id, target_id, way, due_at, next_at)
            VALUES (1, 5, gen_random_uuid(), gen_random_uuid(), 'push', now(), now());
            """)
        let result = try fieldpost(
            "migrate", "--schema", schema, environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(result.status == 0, "\(result.errors)")
        try connection.runScript(
            """
            INSERT INTO delivery.shipment (environment_id, realm_id, notice_id, target_id, way, due_at, next_at)
            SELECT 1, 5, gen_random_uuid(), gen_random_uuid(), w, now(), now() FROM unnest('{apns,fcm}'::text[]) w;
            """)
        #expect(throws: PostgresError.self) {
            try connection.runScript("UPDATE delivery.shipment SET way = 'pigeon'")
        }
        let ways = try connection.run("SELECT way FROM delivery.shipment ORDER BY way").decode(String.self)
        #expect(ways == ["apns", "fcm", "push"])
        let settings = try DeliverySettings.load(EnvironmentID(rawValue: 1), on: &connection)
        #expect(settings?.pushContact == "mailto:a@b.c" && settings?.apns == nil && settings?.fcm == nil)
    }
}
