import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// Notes about tasks over the device API: their authors, their tasks, and what may change.
@Suite(.ownThreads) struct GatewayTaskNoteTests {
    private static func fields(_ task: UUID, _ author: UUID, _ text: String = "t") -> String {
        let ids = "\"task\":\"\(task.text)\",\"author\":\"\(author.text)\""
        return "{\(ids),\"text\":\"\(text)\",\"writtenAt\":\"2026-03-30T09:40:00.000Z\"}"
    }

    private func send(
        _ device: GatewayDevice, _ op: String, _ note: UUID, _ fields: String?, in realm: String
    ) async throws -> String {
        let mutation = await device.mutation(op, note, fields, kind: "TaskNote", in: realm)
        let results = try await device.send([mutation]).results
        return try #require(results.first)
    }

    @Test func authorsChangeTheirNotesAndManagersDeleteAll() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let ben = try await fixture.device("ben@example.com")
            let boss = try await fixture.device("boss@example.com", role: .manager)
            let (hers, his) = (try fixture.person("ana@example.com"), try fixture.person("ben@example.com"))
            let (team, task, note) = (UUID(), UUID(), UUID())
            try fixture.makeTeam(team, members: [hers, his])
            let realm = RealmPath.team(team).description
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: .team(team))

            #expect(try await send(ana, "put", note, Self.fields(task, his), in: realm).contains("invalid-field"))
            #expect(try await send(ana, "put", note, Self.fields(task, hers), in: realm).hasPrefix("accepted"))
            #expect(try await send(ana, "patch", note, "{\"text\":\"u\"}", in: realm).hasPrefix("accepted"))
            #expect(try await send(ben, "patch", note, "{\"text\":\"v\"}", in: realm).contains("kind-not-allowed"))
            #expect(try await send(ben, "delete", note, nil, in: realm).contains("kind-not-allowed"))
            let moved = "{\"task\":\"\(UUID().text)\"}"
            #expect(try await send(ana, "patch", note, moved, in: realm).contains("invalid-field"))
            let given = "{\"author\":\"\(his.text)\"}"
            #expect(try await send(ana, "patch", note, given, in: realm).contains("invalid-field"))
            #expect(
                try await send(boss, "patch", note, "{\"text\":\"w\"}", in: realm).contains("operation-not-allowed"))
            #expect(try await send(boss, "delete", note, nil, in: realm).hasPrefix("accepted"))
            #expect(try await send(ana, "put", note, Self.fields(task, hers), in: realm).contains("deleted"))
        }
    }

    /// The task must be in the realm of the note: no person adds notes to tasks that they cannot read.
    @Test func taskMustBeInTheRealm() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let boss = try await fixture.device("boss@example.com", role: .manager)
            let (hers, manager) = (try fixture.person("ana@example.com"), try fixture.person("boss@example.com"))
            let task = UUID()
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: .manager)
            let own = "/users/ana@example.com"
            #expect(try await send(ana, "put", UUID(), Self.fields(task, hers), in: own).contains("invalid-field"))
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: try .user("ana@example.com"))
            #expect(try await send(ana, "put", UUID(), Self.fields(task, hers), in: own).hasPrefix("accepted"))
            let other = Self.fields(UUID(), manager)
            #expect(try await send(boss, "put", UUID(), other, in: "/manager").contains("invalid-field"))
            // In one request with its task.
            let (new, note) = (UUID(), UUID())
            let mutations = [
                await boss.mutation("put", new, "{\"title\":\"t\"}", kind: "FieldTask", in: "/manager"),
                await boss.mutation("put", note, Self.fields(new, manager), kind: "TaskNote", in: "/manager"),
            ]
            let results = try await boss.send(mutations).results
            #expect(results.allSatisfy { $0.hasPrefix("accepted") }, "\(results)")
        }
    }

    @Test func textAndImageAreLimited() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let hers = try fixture.person("ana@example.com")
            let task = UUID()
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: try .user("ana@example.com"))
            let own = "/users/ana@example.com"
            let (longest, tooLong) = (String(repeating: "å", count: 4_000), String(repeating: "å", count: 4_001))
            #expect(try await send(ana, "put", UUID(), Self.fields(task, hers, longest), in: own).hasPrefix("accepted"))
            #expect(try await send(ana, "put", UUID(), Self.fields(task, hers, tooLong), in: own).contains("invalid"))
            #expect(try await send(ana, "put", UUID(), Self.fields(task, hers, ""), in: own).contains("invalid"))
        }
    }
}
