import Essentials
import Foundation
import Model
import ObjectStore
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// Workers that attempt all writes while a manager adds and removes memberships, and a role is granted and revoked.
/// Their reads and accepted writes are compared with the memberships and roles at each position: position order is
/// commit order.
final class PermissionSimulation: Sendable {
    struct Violation: Error { let text: String }

    /// The range of positions in which a person was in a team.
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
    /// A person who is a manager at times. Nothing is written through the gateway that they follow, so that its reader
    /// finds many objects that have changed again.
    let promoted: GatewayDevice
    let promotedID: UUID
    let masterTask = UUID()
    /// Number of responses that each worker got in this phase; `Int.max` once they have stopped.
    let responseCounts = Mutex<[Int: Int]>([:])
    /// A share and a catalogue without relation to the workers.
    let share = UUID()
    let catalogue = UUID()
    /// Realms that the workers name and may never read.
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

    /// Adds or removes one membership.
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

    /// Writes into a team like the server, and returns the position.
    func write(in team: Int) throws -> Int {
        let (path, task) = (RealmPath.team(teams[team]), UUID())
        try fixture.put(.fieldTask, task, "{\"title\":\"after\"}", in: path)
        let key = ObjectKey(realm: try fixture.realm(path), kind: .fieldTask, id: task)
        return Int(try fixture.object(key).position)
    }

    /// Grants or revokes the role of a manager.
    func promote(_ isManager: Bool) async throws -> Int {
        let mutation = await manager.mutation(
            "patch", promotedID, "{\"role\":\"\(isManager ? "manager" : "worker")\"}", kind: "Person", in: "/common")
        return try Self.position(try await manager.send([mutation]))
    }

    /// Waits until every worker has completed an attempt that it started after this call.
    func letWorkersTry() async throws {
        let before = responseCounts.withLock { $0 }.mapValues { $0 == Int.max ? 0 : $0 }
        try await manager.wait("every worker has completed an attempt") { [self] _ in
            let now = responseCounts.withLock { $0 }
            return workers.indices.allSatisfy { now[$0, default: 0] - before[$0, default: 0] >= 2 }
        }
    }

    /// Writes into the managers' realm, and returns the position.
    func writeMaster() async throws -> Int {
        let mutation = await manager.mutation(
            "patch", masterTask, "{\"title\":\"\(UUID())\"}", kind: "FieldTask", in: "/manager")
        return try Self.position(try await manager.send([mutation]))
    }

    /// Changes an object that every person reads, so that every device gets a checkpoint, and returns the position.
    func beat() async throws -> Int {
        let mutation = await manager.mutation(
            "patch", managerID, "{\"name\":\"\(UUID())\"}", kind: "Person", in: "/common")
        return try Self.position(try await manager.send([mutation]))
    }

    private static func position(_ response: GatewayResponse) throws -> Int {
        guard let text = response.results.first?.split(separator: " ").last, let position = Int(text) else {
            throw Violation(text: "the manager was rejected: \(response.body)")
        }
        return position
    }

    // MARK: A worker

    /// A write that a worker attempts.
    struct Attempt: Sendable {
        let mutation: String
        let permission: Permission
    }

    /// The permission that an attempt requires.
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
        // The value differs each time, so that an accepted patch is a change with its own position.
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
            // A person who has lost a permission could hide that behind this change.
            let mutation = await device.mutation(
                "patch", person, "{\"name\":\"\(number)\"}", kind: "Person", in: "/common")
            return Attempt(mutation: mutation, permission: .always)
        }
        let chosen = forbidden[Int.random(in: 0..<forbidden.count, using: &random)]
        let mutation = await device.mutation(
            chosen.op, chosen.id, chosen.fields, kind: chosen.kind, in: chosen.realm)
        return Attempt(mutation: mutation, permission: .never)
    }

    /// Attempts writes until `isOver`, and returns the positions of the accepted ones, by team.
    func work(
        _ worker: Int, seed: UInt64, until isOver: @Sendable () -> Bool
    ) async throws -> (accepted: [(team: Int, position: Int)], tried: Int) {
        var random = SplitMix64(seed: seed)
        var accepted: [(team: Int, position: Int)] = []
        var tried = 0
        responseCounts.withLock { $0[worker] = 0 }
        defer { responseCounts.withLock { $0[worker] = Int.max } }
        while !isOver() {
            var attempts: [Attempt] = []
            for _ in 0..<Int.random(in: 1...4, using: &random) { attempts.append(await attempt(worker, &random)) }
            let response = try await workers[worker].send(attempts.map(\.mutation), at: tried % 2)
            if response.status == 503 { throw Violation(text: "busy: \(response.body)") }
            tried += attempts.count
            responseCounts.withLock { $0[worker, default: 0] += 1 }
            // Several patches of one object in a request are one change, with the last one's position.
            for (attempt, result) in zip(attempts, response.results) {
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

    /// Writes into the managers' realm and the person's own object until `isOver`; returns the positions of the former.
    func manage(until isOver: @Sendable () -> Bool) async throws -> [Int] {
        var positions: [Int] = []
        while !isOver() {
            let date = Timestamp(millisecondsSinceEpoch: Int64.random(in: 0..<1_000_000_000_000))
            let response = try await promoted.send(
                [
                    await promoted.mutation(
                        "patch", masterTask, "{\"completionDate\":\"\(date)\"}", kind: "FieldTask", in: "/manager"),
                    await promoted.mutation(
                        "patch", promotedID, "{\"name\":\"\(UUID())\"}", kind: "Person", in: "/common"),
                ], at: 0)
            guard response.results.count == 2, response.results[1].hasPrefix("accepted ") else {
                throw Violation(text: "\(response.body)")
            }
            if response.results[0].hasPrefix("accepted ") {
                positions.append(Int(response.results[0].dropFirst(9)) ?? 0)
            }
        }
        return positions
    }

    /// One worker shares with another, and one of them ends it.
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
            if await device.mostHeld[path] != nil { throw Violation(text: "a person without permission read \(path)") }
        }
    }
}
