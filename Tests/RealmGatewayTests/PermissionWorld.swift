import Essentials
import Foundation
import Model
import ObjectStore
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// Workers who try everything, while a manager gives and takes memberships under their hands, and a role. What they got
/// and did is compared with who was in which team, or a manager, at which position: position order is commit order.
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
    /// Who is a manager now and then; nothing is written through the gateway that they follow, so that it finds much
    /// that has changed again.
    let promoted: GatewayDevice
    let promotedID: UUID
    let masterTask = UUID()
    /// How many answers each worker got in this round; `Int.max` once they work no more.
    let answerCounts = Mutex<[Int: Int]>([:])
    /// A share and a catalogue that the workers have nothing to do with.
    let share = UUID()
    let catalogue = UUID()
    /// What no worker may read at any time, although they ask for it.
    let foreign: [String]

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
        try fixture.put(.fieldTask, masterTask, "{\"title\":\"kept\"}", in: .manager)
        promoted = try await fixture.device("promoted@example.com", gateway: 2)
        promotedID = try fixture.person("promoted@example.com")
        try fixture.makeShare(share, owner: managerID, recipient: UUID(), emails: ["manager@example.com"])
        try fixture.put(.reportingTreeNode, UUID(), "{\"name\":\"n\"}", in: .catalogue(catalogue))
        try fixture.put(.realms, UUID(), "{\"userId\":\"x\",\"path\":\"/users/x\"}", in: .users)
        foreign = [
            "/manager", "/users", "/users/manager@example.com", RealmPath.share(share).description,
            RealmPath.catalogue(catalogue).description, RealmPath.team(UUID()).description,
        ]
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

    /// Writes into a team as the server does, and returns the position.
    func write(in team: Int) throws -> Int {
        let (path, task) = (RealmPath.team(teams[team]), UUID())
        try fixture.put(.fieldTask, task, "{\"title\":\"after\"}", in: path)
        let key = ObjectKey(realm: try fixture.realm(path), kind: .fieldTask, id: task)
        return Int(try fixture.object(key).position)
    }

    /// Makes a manager of somebody, or a worker again.
    func promote(_ isManager: Bool) async throws -> Int {
        let mutation = await manager.mutation(
            "patch", promotedID, "{\"role\":\"\(isManager ? "manager" : "worker")\"}", kind: "Person", in: "/common")
        return try Self.position(try await manager.send([mutation]))
    }

    /// Waits until every worker has tried something that was begun since.
    func letWorkersTry() async throws {
        let before = answerCounts.withLock { $0 }.mapValues { $0 == Int.max ? 0 : $0 }
        try await manager.wait("everybody has tried something") { [self] _ in
            let now = answerCounts.withLock { $0 }
            return workers.indices.allSatisfy { now[$0, default: 0] - before[$0, default: 0] >= 2 }
        }
    }

    /// Writes into the managers' realm, and returns the position.
    func writeMaster() async throws -> Int {
        let mutation = await manager.mutation(
            "patch", masterTask, "{\"title\":\"\(UUID())\"}", kind: "FieldTask", in: "/manager")
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
        let permission: Permission
    }

    /// What permits an attempt.
    enum Permission: Equatable {
        case always, never
        /// A team's membership.
        case team(Int)
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
        let complete = "{\"isCompleted\":true,\"completionDate\":\"\(date)\",\"completedBy\":\"\(person)\"}"
        let forbidden: [(op: String, id: UUID, fields: String?, kind: String, realm: String)] = [
            ("patch", tasks[team], "{\"title\":\"mine\"}", "FieldTask", path),
            ("patch", tasks[team], "{\"isCompleted\":true,\"assignee\":\"\(person)\"}", "FieldTask", path),
            ("patch", tasks[team], "{\"isCompleted\":true,\"completedBy\":\"\(other)\"}", "FieldTask", path),
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
            ("patch", other, "{\"role\":\"manager\"}", "Person", "/common"),
            ("patch", masterTask, "{\"isCompleted\":true}", "FieldTask", "/manager"),
            ("delete", share, nil, "Share", RealmPath.share(share).description),
            (
                "put", share, "{\"owner\":\"\(person)\",\"recipient\":\"\(other)\"}", "Share",
                RealmPath.share(share).description
            ),
            ("put", UUID(), "{\"name\":\"mine\"}", "ReportingTreeNode", RealmPath.catalogue(catalogue).description),
        ]
        if Int.random(in: 0..<2, using: &random) == 0 {
            let mutation = await device.mutation("patch", tasks[team], complete, kind: "FieldTask", in: path)
            return Attempt(mutation: mutation, permission: .team(team))
        }
        if Int.random(in: 0..<6, using: &random) == 0 {
            // Whoever has lost a permission may hide it behind this.
            let mutation = await device.mutation(
                "patch", person, "{\"name\":\"\(number)\"}", kind: "Person", in: "/common")
            return Attempt(mutation: mutation, permission: .always)
        }
        let chosen = forbidden[Int.random(in: 0..<forbidden.count, using: &random)]
        let mutation = await device.mutation(
            chosen.op, chosen.id, chosen.fields, kind: chosen.kind, in: chosen.realm)
        return Attempt(mutation: mutation, permission: .never)
    }

    /// Tries things until `isOver`, and returns the positions of what was accepted, by team.
    func work(
        _ worker: Int, seed: UInt64, until isOver: @Sendable () -> Bool
    ) async throws -> (accepted: [(team: Int, position: Int)], tried: Int) {
        var random = SplitMix64(seed: seed)
        var accepted: [(team: Int, position: Int)] = []
        var tried = 0
        answerCounts.withLock { $0[worker] = 0 }
        defer { answerCounts.withLock { $0[worker] = Int.max } }
        while !isOver() {
            var attempts: [Attempt] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) { attempts.append(await attempt(worker, &random)) }
            let answer = try await workers[worker].send(attempts.map(\.mutation), at: tried % 2)
            if answer.status == 503 { throw Violation(text: "busy: \(answer.body)") }
            tried += attempts.count
            answerCounts.withLock { $0[worker, default: 0] += 1 }
            // Several patches of one object in a request are one change: the last one's position is all of theirs.
            for (attempt, result) in zip(attempts, answer.results) {
                let position = result.hasPrefix("accepted ") ? Int(result.dropFirst(9)) : nil
                switch (attempt.permission, position) {
                case (.never, _?): throw Violation(text: "accepted: \(attempt.mutation)")
                case (.always, nil): throw Violation(text: "\(result): \(attempt.mutation)")
                case (.team(let team), let position?): accepted.append((team, position))
                case (.never, nil), (.always, _?), (.team, nil): break
                }
            }
        }
        return (accepted, tried)
    }

    /// Writes into the managers' realm, and tells of themselves, until `isOver`; returns the positions of the former.
    func manage(until isOver: @Sendable () -> Bool) async throws -> [Int] {
        var positions: [Int] = []
        while !isOver() {
            let date = Timestamp(millisecondsSinceEpoch: Int64.random(in: 0..<1_000_000_000_000))
            let answer = try await promoted.send(
                [
                    await promoted.mutation(
                        "patch", masterTask, "{\"completionDate\":\"\(date)\"}", kind: "FieldTask", in: "/manager"),
                    await promoted.mutation(
                        "patch", promotedID, "{\"name\":\"\(UUID())\"}", kind: "Person", in: "/common"),
                ], at: 0)
            guard answer.results.count == 2, answer.results[1].hasPrefix("accepted ") else {
                throw Violation(text: "\(answer.body)")
            }
            if answer.results[0].hasPrefix("accepted ") { positions.append(Int(answer.results[0].dropFirst(9)) ?? 0) }
        }
        return positions
    }

    /// One worker shares with another, and one of the two ends it.
    func shareOnce(endsByOwner: Bool) async throws {
        let share = Share.id(of: ids[0], with: ids[1])
        let path = RealmPath.share(share).description
        let emails = ["worker0@example.com", "worker1@example.com"]
        try fixture.makeShare(share, owner: ids[0], recipient: ids[1], emails: emails)
        for device in workers[..<2] { try await device.wait("the share") { $0.shown(path).count == 1 } }
        // Their own queues are busy.
        let end = try await fixture.device(emails[endsByOwner ? 0 : 1])
        let delete = await end.mutation("delete", share, kind: "Share", in: path)
        guard try await end.send([delete]).results.first?.hasPrefix("accepted ") == true else {
            throw Violation(text: delete)
        }
        for device in workers[..<2] { try await device.wait("no share") { $0.copy[path] == nil } }
        for device in workers[2...] {
            if await device.mostHeld[path] != nil { throw Violation(text: "a stranger read \(path)") }
        }
    }
}
