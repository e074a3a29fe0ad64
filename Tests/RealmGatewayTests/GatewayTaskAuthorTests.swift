import Essentials
import Foundation
import Model
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

/// Authors of tasks, whom `task-fan-out` does not notify of their own acts.
@Suite(.ownThreads) struct GatewayTaskAuthorTests {
    private func send(_ device: GatewayDevice, _ op: String, _ task: UUID, _ title: String? = nil) async throws {
        let fields = title.map { "{\"title\":\"\($0)\"}" }
        let mutation = await device.mutation(op, task, fields, kind: "FieldTask", in: "/manager")
        let results = try await device.send([mutation]).results
        #expect(results.first?.hasPrefix("accepted") == true, "\(results)")
    }

    /// Returns the position and the author of each task; several people are none.
    private func authors(_ fixture: GatewayFixture) throws -> [UUID: [String]] {
        try fixture.withDatabase { connection in
            let rows = try connection.run(
                """
                SELECT a.task_id, coalesce(a.author_id::text, 'none'), o.edit_position = a.edit_position
                FROM device.task_author a
                JOIN store.object o ON (o.environment_id, o.id) = (a.environment_id, a.task_id)
                """)
            var authors: [UUID: [String]] = [:]
            for (task, author, isLast) in try rows.decode(UUID.self, String.self, Bool.self) {
                authors[task, default: []].append(isLast ? author : "of an earlier change")
            }
            return authors
        }
    }

    @Test func authorOfEachChangeIsRecorded() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com", role: .manager)
            let ben = try await fixture.device("ben@example.com", role: .manager)
            let (hers, his) = (try fixture.person("ana@example.com").text, try fixture.person("ben@example.com").text)
            let (one, two) = (UUID(), UUID())
            try await send(ana, "put", one, "t")
            try await send(ana, "patch", one, "u")
            try await send(ben, "put", two, "t")
            #expect(try authors(fixture) == [one: [hers], two: [his]])
            // A deletion has an author, too. The changes of two people have none.
            try await send(ana, "delete", one)
            try await send(ana, "delete", two)
            #expect(try authors(fixture) == [one: [hers], two: ["none"]])
        }
    }

    @Test func integrationIsNoAuthor() async throws {
        try await withGateway { fixture in
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let ana = try await fixture.device("ana@example.com", role: .manager)
            let task = UUID()
            try await send(books, "put", task, "t")
            #expect(try authors(fixture) == [task: ["none"]])
            try await send(ana, "patch", task, "u")
            #expect(try authors(fixture) == [task: ["none"]], "the integration's change is not processed yet")
        }
    }

    /// A rejected mutation, a repeated one, and progress of a copy leave no author.
    @Test func onlyWritesOfMastersHaveAuthors() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com", role: .manager)
            let (team, task) = (UUID(), UUID())
            try fixture.makeTeam(team, members: [try fixture.person("ana@example.com")])
            try fixture.put(.fieldTask, task, "{\"title\":\"t\"}", in: .team(team))
            let path = RealmPath.team(team).description
            let done = await ana.mutation("patch", task, "{\"isCompleted\":true}", kind: "FieldTask", in: path)
            let wrong = await ana.mutation("put", UUID(), "{\"title\":7}", kind: "FieldTask", in: "/manager")
            let results = try await ana.send([done, wrong]).results
            #expect(results[0].hasPrefix("accepted") && !results[1].hasPrefix("accepted"))
            #expect(try authors(fixture).isEmpty)
        }
    }
}
