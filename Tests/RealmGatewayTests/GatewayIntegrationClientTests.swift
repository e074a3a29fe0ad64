import Foundation
import Integration
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// The client of the module `Integration` against a gateway.
@Suite(.ownThreads) struct GatewayIntegrationClientTests {
    @Test func mutationsAreAppliedAndRejected() async throws {
        try await withGateway { fixture in
            let client = try IntegrationClient(url: fixture.url(""), key: try fixture.addIntegration("books"))
            let realm = try RealmPath.user("ana@example.com")
            _ = try fixture.realm(realm)
            let id = UUID()
            func write(_ operation: Mutation.Operation, _ fields: String?, at position: Int64? = nil) -> Mutation {
                Mutation(
                    operation: operation, kind: .timeEntry, id: id, fields: fields.map { Array($0.utf8) },
                    position: position)
            }
            #expect(try await client.send(write(.put, #"{"text":"roof"}"#, at: 0), in: realm) == nil)
            #expect(try await client.send(write(.put, "{}", at: 0), in: realm)?.code == "version-conflict")
            #expect(try await client.send(write(.patch, #"{"backendId":"7"}"#), in: realm) == nil)
            let unknown = try await client.send(write(.patch, #"{"roof":1}"#), in: realm)
            #expect(unknown?.code == "unknown-field" && unknown?.detail.isEmpty == false)
            let stored = try fixture.stored(realm.description)["TimeEntry/\(id.uuidString.lowercased())"]
            #expect(stored == #"{"text":"roof","backendId":"7"}"# || stored == #"{"backendId":"7","text":"roof"}"#)
            #expect(try await client.send(write(.delete, nil), in: realm) == nil)
            #expect(try fixture.stored(realm.description).isEmpty)
            // Concurrent mutations do not leave gaps in their numbers.
            try await withThrowingTaskGroup { group in
                for _ in 0..<20 {
                    let put = Mutation(operation: .put, kind: .timeEntry, id: UUID(), fields: Array("{}".utf8))
                    group.addTask {
                        let rejection = try await client.send(put, in: realm)
                        #expect(rejection == nil)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try fixture.stored(realm.description).count == 20)
        }
    }

    @Test func blobsAreUploadedAndDownloaded() async throws {
        try await withGateway { fixture in
            let client = try IntegrationClient(url: fixture.url("/"), key: try fixture.addIntegration("books"))
            let (id, picture) = (UUID(), TestImage.make())
            #expect(try await client.download(id) == nil)
            try await client.upload(picture, as: id)
            try await client.upload(picture, as: id)
            #expect(try await client.download(id) == picture)
            await #expect {
                try await client.upload(Array("text".utf8), as: UUID())
            } throws: { error in
                guard case .refused(let status, _) = error as? IntegrationError else { return false }
                return status == 415
            }
            let unknown = try IntegrationClient(url: fixture.url(""), key: "fpk_x")
            await #expect {
                _ = try await unknown.download(id)
            } throws: { error in
                guard case .refused(status: 401, _) = error as? IntegrationError else { return false }
                return true
            }
        }
    }
}
