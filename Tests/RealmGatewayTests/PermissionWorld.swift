import Foundation
import Model
import Seeded
import Testing

@testable import RealmGateway

/// Workers who try everything, while a manager gives and takes memberships under their hands. What they got and did is
/// compared with who was in which team at which position: position order is commit order.
final class PermissionWorld: Sendable {
    struct Violation: Error { let text: String }

    /// From which position on, and until which, a person was in a team.
    struct Interval: Equatable, Sendable {
        let from: Int
        var until = Int.max
    }

    let fixture: GatewayFixture
    let workers: [GatewayDevice]
    let ids: [UUID]
    let manager: GatewayDevice
    let managerID: UUID
    let teams: [UUID]
    let tasks: [UUID]

    init(_ fixture: GatewayFixture, workerCount: Int, teamCount: Int) async throws {
        self.fixture = fixture
        var workers: [GatewayDevice] = []
        for number in 0..<workerCount {
            workers.append(try await fixture.device("worker\(number)@example.com", gateway: number % 2))
        }
        self.workers = workers
        ids = try (0..<workerCount).map { try fixture.person("worker\($0)@example.com") }
        manager = try await fixture.device("manager@example.com", role: .manager)
        managerID = try fixture.person("manager@example.com")
        teams = (0..<teamCount).map { _ in UUID() }
        tasks = (0..<teamCount).map { _ in UUID() }
        for (team, task) in zip(teams, tasks) {
            try fixture.makeTeam(team)
            try fixture.put(.fieldTask, task, "{\"title\":\"kept\"}", in: .team(team))
        }
        try fixture.put(.fieldTask, UUID(), "{\"title\":\"kept\"}", in: .manager)
    }

    // MARK: The manager

    /// Gives or takes one membership.
    ///
    /// - Returns: The position of the change.
    func toggle(_ worker: Int, _ team: Int, isMember: Bool) async throws -> Int {
        let (person, team) = (ids[worker], teams[team])
        let id = Membership.id(of: person, in: team)
        let fields = "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}"
        let mutation = await manager.mutation(
            isMember ? "put" : "delete", id, isMember ? fields : nil, kind: "Membership", in: "/common")
        return try Self.position(try await manager.send([mutation]))
    }

    /// Writes into a team, and returns the position.
    func write(in team: Int) async throws -> Int {
        let mutation = await manager.mutation(
            "put", UUID(), "{\"title\":\"after\"}", kind: "FieldTask", in: RealmPath.team(teams[team]).description)
        return try Self.position(try await manager.send([mutation]))
    }

    /// Changes something that everybody sees, so that every device gets a checkpoint, and returns the position.
    func beat() async throws -> Int {
        let mutation = await manager.mutation(
            "patch", managerID, "{\"name\":\"\(UUID())\"}", kind: "Person", in: "/common")
        return try Self.position(try await manager.send([mutation]))
    }

    private static func position(_ answer: Answer) throws -> Int {
        guard let text = answer.results.first?.split(separator: " ").last, let position = Int(text) else {
            throw Violation(text: "the manager was refused: \(answer.body)")
        }
        return position
    }

    // MARK: A worker

    /// One thing a worker tries.
    struct Attempt: Sendable {
        let mutation: String
        /// The team whose membership permits it; `nil`: nothing does.
        let team: Int?
    }

    func attempt(_ worker: Int, _ random: inout SplitMix64) async -> Attempt {
        let device = workers[worker]
        let other = ids[(worker + 1) % ids.count]
        let team = Int.random(in: 0..<teams.count, using: &random)
        let path = RealmPath.team(teams[team]).description
        let person = ids[worker]
        let membership = Membership.id(of: person, in: teams[team])
        let number = Int.random(in: 0...Int.max, using: &random)
        // The value differs each time, so that an accepted patch is a change with a position of its own.
        let date = Timestamp(millisecondsSinceEpoch: Int64(number % 1_000_000_000_000))
        let complete = "{\"isCompleted\":true,\"completionDate\":\"\(date)\"}"
        let forbidden: [(op: String, id: UUID, fields: String?, kind: String, realm: String)] = [
            ("patch", tasks[team], "{\"title\":\"mine\"}", "FieldTask", path),
            ("patch", tasks[team], "{\"isCompleted\":true,\"assignee\":\"\(person)\"}", "FieldTask", path),
            ("put", tasks[team], "{\"title\":\"mine\"}", "FieldTask", path),
            ("delete", tasks[team], nil, "FieldTask", path),
            ("put", UUID(), "{\"title\":\"mine\"}", "FieldTask", "/manager"),
            ("patch", person, "{\"role\":\"manager\"}", "Person", "/common"),
            ("patch", person, "{\"name\":\"w\",\"role\":\"admin\"}", "Person", "/common"),
            ("put", person, "{\"name\":\"w\",\"role\":\"admin\"}", "Person", "/common"),
            ("patch", other, "{\"name\":\"mine\"}", "Person", "/common"),
            ("delete", person, nil, "Person", "/common"),
            ("put", UUID(), "{\"name\":\"mine\"}", "Team", "/common"),
            ("delete", teams[team], nil, "Team", "/common"),
            (
                "put", membership, "{\"person\":\"\(person)\",\"team\":\"\(teams[team])\"}", "Membership", "/common"
            ),
            ("delete", Membership.id(of: other, in: teams[team]), nil, "Membership", "/common"),
            ("put", other, "{\"name\":\"w\",\"email\":\"worker\(worker)@example.com\"}", "PersonLookup", "/common"),
            ("put", UUID(), "{\"text\":\"mine\"}", "TimeEntry", "/users/worker\((worker + 1) % ids.count)@example.com"),
            ("put", UUID(), "{\"userId\":\"w\",\"path\":\"/users/w\"}", "Realms", "/users"),
            ("put", UUID(), "{\"name\":\"mine\",\"email\":\"w\"}", "User", "/users/worker\(worker)@example.com"),
        ]
        if Int.random(in: 0..<2, using: &random) == 0 {
            let mutation = await device.mutation("patch", tasks[team], complete, kind: "FieldTask", in: path)
            return Attempt(mutation: mutation, team: team)
        }
        let chosen = forbidden[Int.random(in: 0..<forbidden.count, using: &random)]
        let mutation = await device.mutation(
            chosen.op, chosen.id, chosen.fields, kind: chosen.kind, in: chosen.realm)
        return Attempt(mutation: mutation, team: nil)
    }

    /// Tries things until `isOver`, and returns the positions of what was accepted, by team.
    func work(
        _ worker: Int, seed: UInt64, until isOver: @Sendable () -> Bool
    ) async throws -> (accepted: [(team: Int, position: Int)], tried: Int) {
        var random = SplitMix64(seed: seed)
        var accepted: [(team: Int, position: Int)] = []
        var tried = 0
        while !isOver() {
            var attempts: [Attempt] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) { attempts.append(await attempt(worker, &random)) }
            let answer = try await workers[worker].send(attempts.map(\.mutation), at: tried % 2)
            if answer.status == 503 { throw Violation(text: "busy: \(answer.body)") }
            tried += attempts.count
            // Several patches of one object in a request are one change: the last one's position is all of theirs.
            for (attempt, result) in zip(attempts, answer.results) where result.hasPrefix("accepted ") {
                guard let team = attempt.team else {
                    throw Violation(text: "accepted: \(attempt.mutation)")
                }
                accepted.append((team, Int(result.dropFirst(9)) ?? 0))
            }
        }
        return (accepted, tried)
    }
}
