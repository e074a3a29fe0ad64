import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Who may read an image: whoever may open a realm in which an object names it, whoever wrote that object.
@Suite(.ownThreads) struct GatewayBlobAccessTests {
    private static func task(_ image: UUID?) -> String {
        "{\"title\":\"t\"\(image.map { ",\"image\":\"\($0.text)\"" } ?? "")}"
    }

    @Test func whoMayOpenTheRealmReadsTheBlob() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let bo = try await fixture.device("bo@example.com")
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let (team, task, id) = (UUID(), UUID(), UUID())
            try fixture.makeTeam(team, members: [try fixture.person("bo@example.com")])
            func readers() async throws -> [Bool] {
                [try await ana.seesBlob(id), try await bo.seesBlob(id), try await manager.seesBlob(id)]
            }
            #expect(try await readers() == [false, false, false])
            try await ana.putBlob(id)
            #expect(try await readers() == [true, false, false], "what nothing names is its sender's")
            try fixture.put(.fieldTask, task, Self.task(id), in: .team(team))
            #expect(try await readers() == [false, true, true], "the team's, and managers'")
            try fixture.remove(try fixture.person("bo@example.com"), from: team)
            #expect(try await readers() == [false, false, true])
            try fixture.set(.worker, of: "manager@example.com")
            #expect(try await readers() == [false, false, false])
            try fixture.delete(.fieldTask, task, in: .team(team))
            #expect(try await readers() == [true, false, false], "nothing names it any more")
            // A team that is no more opens for nobody.
            try fixture.put(.fieldTask, task, Self.task(id), in: .team(UUID()))
            try fixture.set(.manager, of: "manager@example.com")
            #expect(try await readers() == [false, false, false])
        }
    }

    /// A kind, the realm and the fields that name a blob, and whether a worker, and a manager, may read it.
    struct Place: Sendable, CustomTestStringConvertible {
        let kind: Kind
        let path: RealmPath
        let field: String
        let isWorkers: Bool
        var isManagers = true
        var testDescription: String { "\(kind.rawValue) in \(path)" }
    }

    static let places = [
        Place(kind: .person, path: .common, field: "avatar", isWorkers: true),
        Place(kind: .team, path: .common, field: "image", isWorkers: true),
        Place(kind: .fieldTask, path: .manager, field: "image", isWorkers: false),
        Place(
            kind: .fieldTask, path: RealmPath("/users/ana@example.com") ?? .common, field: "image", isWorkers: true,
            isManagers: false),
    ]

    @Test(arguments: places) func everyKindWithAnImageNamesIt(place: Place) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let sender = try await fixture.device("sender@example.com")
            let (first, second, object) = (UUID(), UUID(), UUID())
            for id in [first, second] { try await sender.putBlob(id, TestImage.make(.jpeg, id.text)) }
            for (now, before) in [(first, second), (second, first)] {
                let fields = "{\"name\":\"n\",\"title\":\"t\",\"\(place.field)\":\"\(now.text)\"}"
                try fixture.put(place.kind, object, fields, in: place.path)
                #expect(try await ana.seesBlob(now) == place.isWorkers)
                #expect(try await manager.seesBlob(now) == place.isManagers)
                // What is named no more is its sender's again.
                #expect(try await [manager.seesBlob(before), sender.seesBlob(before)] == [false, true])
            }
        }
    }

    /// The field of another kind, and what is no id, name nothing; whoever writes it is not refused for it.
    @Test func whatNamesNothingIsNoReference() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            try await ana.putBlob(id)
            try fixture.put(.person, UUID(), "{\"image\":\"\(id.text)\"}", in: .common)
            try fixture.put(.team, UUID(), "{\"avatar\":\"\(id.text)\"}", in: .common)
            try fixture.put(.personLookup, UUID(), "{\"image\":\"\(id.text)\"}", in: .common)
            for value in ["null", "5", "\"\"", "\"x\(id.text)\"", "[\"\(id.text)\"]", "\"\(id.text) \""] {
                try fixture.put(.fieldTask, UUID(), "{\"title\":\"\\\"image\\\"\",\"image\":\(value)}", in: .manager)
            }
            #expect(try await ana.seesBlob(id))
            #expect(try fixture.references() == 0)
        }
    }

    /// What a service copies, as what a device writes.
    @Test func aCopyNamesWhatItsSourceNames() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let bo = try await fixture.device("bo@example.com")
            let (team, first, second) = (UUID(), UUID(), UUID())
            try fixture.makeTeam(team, members: [try fixture.person("bo@example.com")])
            for id in [first, second] { try await ana.putBlob(id, TestImage.make(.png, id.text)) }
            let key = ObjectKey(realm: try fixture.realm(.team(team)), kind: .fieldTask, id: UUID())
            for image in [first, second] { try fixture.copy(key, Self.task(image)) }
            #expect(try await [bo.seesBlob(first), bo.seesBlob(second)] == [false, true])
            #expect(try await [ana.seesBlob(first), ana.seesBlob(second)] == [true, false])
            try fixture.copy(key, nil)
            #expect(try await !bo.seesBlob(second))
            #expect(try fixture.references() == 0)
        }
    }

    /// Whatever is written, and however often: an object names what its fields say, and nothing else.
    @Test(arguments: Seeds.random(2, for: "references")) func referencesAreWhatObjectsSay(seed: UInt64) async throws {
        try await withGateway { fixture in
            let blobs = (0..<4).map { _ in UUID() }
            let keys = try [RealmPath.manager, .team(UUID())].flatMap { path in
                let realm = try fixture.realm(path)
                return (0..<5).map { _ in ObjectKey(realm: realm, kind: .fieldTask, id: UUID()) }
            }
            var random = SplitMix64(seed: seed)
            for round in 0..<60 {
                var batch = WriteBatch(environment: fixture.environment)
                for key in keys where Bool.random(using: &random) {
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        batch.delete(key, decision: 0)
                    } else {
                        let image = Bool.random(using: &random) ? blobs.randomElement(using: &random) : nil
                        batch.put(key, try CanonicalJSON(Self.task(image)), decision: 0)
                    }
                }
                // A decision that misses writes nothing, its reference neither.
                if round.isMultiple(of: 3) { batch.expect(keys[0], at: 999_999_999, decision: 0) }
                let filled = batch
                try fixture.withDatabase { _ = try filled.commit(on: &$0) }
            }
            let wrong = try fixture.withDatabase { connection in
                try connection.run(
                    """
                    SELECT FROM (
                        SELECT realm_id, kind, id, fields::json->>'image' AS blob FROM store.object
                        WHERE kind = \(Kind.fieldTask) AND fields::json->>'image' IS NOT NULL
                    ) o FULL JOIN blob.reference r
                        ON r.realm_id = o.realm_id AND r.kind = o.kind AND r.id = o.id AND r.blob_id::text = o.blob
                    WHERE r.id IS NULL OR o.id IS NULL
                    """
                ).count
            }
            #expect(wrong == 0)
            #expect(try fixture.references() > 0)
            // Rows that are removed without a tombstone name nothing either.
            try fixture.withDatabase { _ = try $0.run("DELETE FROM store.object") }
            #expect(try fixture.references() == 0)
        }
    }
}

extension GatewayFixture {
    /// How many references there are.
    fileprivate func references() throws -> Int {
        try withDatabase { try $0.run("SELECT FROM blob.reference").count }
    }

    /// Writes a copy of another object, as services do.
    fileprivate func copy(_ key: ObjectKey, _ fields: String?) throws {
        try withDatabase { connection in
            var batch = WriteBatch(environment: environment)
            if let fields {
                batch.put(key, try CanonicalJSON(fields), decision: 0)
            } else {
                batch.delete(key, decision: 0)
            }
            _ = try batch.commit(on: &connection)
        }
    }
}
