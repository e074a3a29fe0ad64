import Access
import Crypto
import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Writes of managers and the server, and people's ids.
extension GatewayFixture {
    /// Returns the id of the `Person` object of a person who has logged in.
    func person(_ email: String) throws -> UUID {
        try withDatabase { connection in
            let rows = try connection.run("SELECT object_id FROM access.person WHERE email = \(email)")
            return try #require(rows.first { _ in true }).value(0)
        }
    }

    /// Returns a device whose person has logged in.
    func device(_ email: String, role: Role? = nil, gateway: Int = 0) async throws -> GatewayDevice {
        let device = try await GatewayDevice(self, email, gateway: gateway)
        let response = GatewayResponse(try await client.send(device.request("GET", "/v1/realms")))
        try #require(response.status == 200, "\(response.body)")
        if let role { try set(role, of: email) }
        return device
    }

    /// Adds an integration, and returns its key.
    func addIntegration(_ name: String, in environment: Int32 = 1) throws -> String {
        let key = IntegrationKey.make()
        let hash = Bytea(Array(SHA256.hash(data: Array(key.utf8))))
        try withDatabase { connection in
            _ = try connection.run(
                """
                INSERT INTO access.integration (environment_id, name, key_hash)
                VALUES (\(environment), \(name), \(hash))
                """)
        }
        return key
    }

    /// Adds another environment with an integration, and returns its key.
    func addEnvironment(_ id: Int32) throws -> String {
        try withDatabase { connection in
            _ = try connection.run([
                "INSERT INTO realm.environment (id, name) VALUES (\(id), \("test-\(id)"))",
                "INSERT INTO realm.relay VALUES (\(id), 1, 1, 1, 9000000000)",
            ])
        }
        return try addIntegration("books", in: id)
    }

    func set(_ role: Role, of email: String) throws {
        let key = ObjectKey(realm: try realm(.common), kind: .person, id: try person(email))
        let person = try object(key)
        try write { try $0.patch(person, CanonicalJSON("{\"role\":\"\(role.rawValue)\"}"), decision: 0) }
    }

    func put(_ kind: Kind, _ id: UUID, _ fields: String, in path: RealmPath) throws {
        let key = ObjectKey(realm: try realm(path), kind: kind, id: id)
        try write { $0.put(key, try CanonicalJSON(fields), decision: 0) }
    }

    func delete(_ kind: Kind, _ id: UUID, in path: RealmPath) throws {
        let key = ObjectKey(realm: try realm(path), kind: kind, id: id)
        try write { $0.delete(key, decision: 0) }
    }

    func makeTeam(_ team: UUID, members: [UUID] = []) throws {
        try put(.team, team, "{\"name\":\"\(team)\"}", in: .common)
        for person in members { try add(person, to: team) }
    }

    func add(_ person: UUID, to team: UUID) throws {
        try put(
            .membership, Membership.id(of: person, in: team),
            "{\"person\":\"\(person)\",\"team\":\"\(team.text)\"}"
                .lowercased(), in: .common)
    }

    func remove(_ person: UUID, from team: UUID) throws {
        try delete(.membership, Membership.id(of: person, in: team), in: .common)
    }

    /// Writes a share, and the references to it.
    func makeShare(_ share: UUID, owner: UUID, recipient: UUID, emails: [String]) throws {
        let fields = "{\"owner\":\"\(owner.text)\",\"recipient\":\"\(recipient.text)\"}"
        try put(.share, share, fields, in: .share(share))
        for email in emails { try put(.share, share, fields, in: try .user(email)) }
    }
}
