import Essentials
import Foundation
import HTTPClient
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Read access to an image: callers who may open a realm with an object that refers to it, by any writer.
@Suite(.ownThreads) struct GatewayBlobAccessTests {
    private static func task(_ image: UUID?) -> String {
        "{\"title\":\"t\"\(image.map { ",\"image\":\"\($0.text)\"" } ?? "")}"
    }

    @Test func readerOfAReferencingRealmReadsTheBlob() async throws {
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
            #expect(try await readers() == [true, false, false], "only the uploader reads an unreferenced blob")
            try fixture.put(.fieldTask, task, Self.task(id), in: .team(team))
            #expect(try await readers() == [false, true, true], "the team's, and managers'")
            try fixture.remove(try fixture.person("bo@example.com"), from: team)
            #expect(try await readers() == [false, false, true])
            try fixture.set(.worker, of: "manager@example.com")
            #expect(try await readers() == [false, false, false])
            try fixture.delete(.fieldTask, task, in: .team(team))
            #expect(try await readers() == [true, false, false], "no object refers to it any more")
            // A deleted team grants no access.
            try fixture.put(.fieldTask, task, Self.task(id), in: .team(UUID()))
            try fixture.set(.manager, of: "manager@example.com")
            #expect(try await readers() == [false, false, false])
        }
    }

    /// A kind, realm and field that refer to a blob, and whether a worker and a manager may read it.
    struct ReferenceCase: Sendable, CustomTestStringConvertible {
        let kind: Kind
        let path: RealmPath
        let field: String
        let isWorkers: Bool
        var isManagers = true
        var testDescription: String { "\(kind.rawValue) in \(path)" }
    }

    static let references = [
        ReferenceCase(kind: .person, path: .common, field: "avatar", isWorkers: true),
        ReferenceCase(kind: .team, path: .common, field: "image", isWorkers: true),
        ReferenceCase(kind: .taskNote, path: .manager, field: "image", isWorkers: false),
        ReferenceCase(kind: .fieldTask, path: .manager, field: "image", isWorkers: false),
        ReferenceCase(
            kind: .fieldTask, path: RealmPath("/users/ana@example.com") ?? .common, field: "image", isWorkers: true,
            isManagers: false),
    ]

    @Test(arguments: references) func everyImageFieldIsAReference(reference: ReferenceCase) async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let manager = try await fixture.device("manager@example.com", role: .manager)
            let sender = try await fixture.device("sender@example.com")
            let (first, second, object) = (UUID(), UUID(), UUID())
            for id in [first, second] { try await sender.putBlob(id, TestImage.make(.jpeg, id.text)) }
            for (now, before) in [(first, second), (second, first)] {
                let fields = "{\"name\":\"n\",\"title\":\"t\",\"\(reference.field)\":\"\(now.text)\"}"
                try fixture.put(reference.kind, object, fields, in: reference.path)
                #expect(try await ana.seesBlob(now) == reference.isWorkers)
                #expect(try await manager.seesBlob(now) == reference.isManagers)
                // Once unreferenced, only its uploader reads it.
                #expect(try await [manager.seesBlob(before), sender.seesBlob(before)] == [false, true])
            }
        }
    }

    /// Fields of other kinds, and values that are not ids, are not references; the write is accepted.
    @Test func otherValuesAreNotReferences() async throws {
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

    /// Copies by a service refer to blobs like writes by a device.
    @Test func copyRefersToTheBlobOfItsSource() async throws {
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

    /// After any sequence of writes, the references match the objects' fields.
    @Test(arguments: Seeds.random(2, for: "references")) func referencesMatchTheObjects(seed: UInt64) async throws {
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
                // A conflicted decision writes neither the object nor its reference.
                if round.isMultiple(of: 3) { batch.expect(keys[0], at: 999_999_999, decision: 0) }
                let filled = batch
                try fixture.withDatabase { _ = try filled.commit(on: &$0) }
            }
            // One of a hundred seeds ends without a reference.
            try fixture.write { batch in
                batch.put(keys[0], try CanonicalJSON(Self.task(blobs[0])), decision: 0)
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
            // Rows that are removed without a tombstone have no references either.
            try fixture.withDatabase { _ = try $0.run("DELETE FROM store.object") }
            #expect(try fixture.references() == 0)
        }
    }
}

extension GatewayFixture {
    /// Returns the number of references.
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
