import Essentials
import Foundation
import Model
import Synchronization
import TestSupport
import Testing

@testable import RealmGateway

/// A worker cannot read or write outside the permission table, even while a membership or a role is revoked.
///
/// 1. A write into a team is accepted only at positions at which the worker was a member, one into the managers' realm
///    only while its writer was a manager, and other writes never.
/// 2. A device that follows a team gets no object of it from after its person's removal, and none of the managers'
///    realm from after the loss of the role, also if the person changes own objects meanwhile.
/// 3. A named realm of others is `closed`, and none of its objects arrives.
/// 4. At the end, people, teams, memberships and tasks are as the manager wrote them.
@Suite(.ownThreads) struct PermissionPropertyTests {
    @Test(arguments: [1] + Seeds.random(1, for: "permissions"))
    func accessOutsideTheTableIsImpossible(seed: UInt64) async throws {
        var limits = GatewayLimits()
        // With small pages, a revocation and the changes after it are on different ones.
        limits.changeCountMax = 5
        limits.liveInterval = .milliseconds(100)
        limits.liveIdleInterval = limits.liveInterval
        try await withGateway(count: 3, limits: limits) { fixture in
            let world = try await PermissionSimulation(fixture, workerCount: 3, teamCount: 2)
            let live = (world.workers + [world.promoted]).map { device in
                Task { try await device.follow(naming: world.foreign) }
            }
            defer { for task in live { task.cancel() } }
            for device in world.workers + [world.promoted] { try await device.wait("live") { $0.checkpointCount > 0 } }
            var random = SplitMix64(seed: seed)
            var acceptedCount = 0
            var refusedCount = 0
            for _ in 0..<6 {
                let seeds = world.workers.map { _ in random.next() }
                let counts = try await self.round(world, seeds: seeds, toggles: 20, &random)
                acceptedCount += counts.accepted
                refusedCount += counts.refused
            }
            for device in world.workers {
                #expect(Set(await device.closed).isSuperset(of: world.foreign))
                for path in world.foreign { #expect(await device.mostHeld[path] == nil, "\(path)") }
            }
            #expect(acceptedCount > 20 && refusedCount > 100, "\(acceptedCount) accepted, \(refusedCount) refused")
            try checkEnd(world)
        }
    }

    /// Workers write while memberships are added and removed; at the end there are none.
    private func round(
        _ world: PermissionSimulation, seeds: [UInt64], toggles: Int, _ random: inout SplitMix64
    ) async throws -> (accepted: Int, refused: Int) {
        let isOver = Flag()
        let working = seeds.indices.map { worker in
            Task { try await world.work(worker, seed: seeds[worker]) { isOver.isUp } }
        }
        let managing = Task { try await world.manage { isOver.isUp } }
        var roles: [PermissionSimulation.Interval] = []
        var intervals: [Pair: [PermissionSimulation.Interval]] = [:]
        func toggle(_ pair: Pair, isMember: Bool) async throws {
            let position = try await world.toggle(pair.worker, pair.team, isMember: isMember)
            if isMember {
                intervals[pair, default: []].append(.init(from: position))
            } else {
                let last = (intervals[pair]?.count ?? 1) - 1
                intervals[pair]?[last].until = position
            }
        }
        var members: Set<Pair> = []
        for number in 0..<toggles {
            if number % 5 == 0 { roles.append(.init(from: try await world.promote(true))) }
            if number % 5 == 3 {
                roles[roles.count - 1].until = try await world.promote(false)
                try await checkManager(world)
            }
            let pair = Pair(
                worker: Int.random(in: 0..<world.workers.count, using: &random),
                team: Int.random(in: 0..<world.teams.count, using: &random))
            let isMember = members.remove(pair) == nil
            if isMember { members.insert(pair) }
            try await toggle(pair, isMember: isMember)
            try await world.letWorkersTry()
            if !isMember { try await checkReading(world, [pair.worker], team: pair.team) }
        }
        try await world.shareOnce(endsByOwner: random.next() % 2 == 0)
        for pair in members { try await toggle(pair, isMember: false) }
        for team in world.teams.indices { try await checkReading(world, Array(world.workers.indices), team: team) }
        isOver.raise()
        for position in try await managing.value {
            let isInside = roles.contains { $0.from < position && position < $0.until }
            #expect(isInside, "a worker wrote in /manager at \(position): \(roles)")
        }
        var counts = (accepted: 0, refused: 0)
        for (worker, task) in working.enumerated() {
            let (accepted, tried) = try await task.value
            counts.accepted += accepted.count
            counts.refused += tried - accepted.count
            for (team, position) in accepted {
                let memberships = intervals[Pair(worker: worker, team: team)] ?? []
                let isInside = memberships.contains { $0.from < position && position < $0.until }
                #expect(isInside, "worker \(worker) wrote in team \(team) at \(position): \(memberships)")
            }
        }
        return counts
    }

    private struct Pair: Hashable {
        let worker: Int
        let team: Int
    }

    /// A person who is not a member of a team now gets no later change of it.
    private func checkReading(_ world: PermissionSimulation, _ workers: [Int], team: Int) async throws {
        let position = try world.write(in: team)
        let end = try await world.beat()
        let realm = RealmPath.team(world.teams[team]).description
        for worker in workers {
            let device = world.workers[worker]
            try await device.wait("later changes") { $0.checkpoint >= end }
            let (highest, copy) = (await device.highest[realm] ?? 0, await device.copy[realm])
            #expect(highest < position && copy == nil, "worker \(worker), team \(team)")
        }
    }

    /// A person who is not a manager any more gets no later writes of managers.
    private func checkManager(_ world: PermissionSimulation) async throws {
        let position = try await world.writeMaster()
        let end = try await world.beat()
        try await world.promoted.wait("later changes") { $0.checkpoint >= end }
        let (highest, copy) = (await world.promoted.highest["/manager"] ?? 0, await world.promoted.copy["/manager"])
        #expect(highest < position && copy == nil)
    }

    private func checkEnd(_ world: PermissionSimulation) throws {
        let common = try world.fixture.stored("/common")
        #expect(common.keys.filter { $0.hasPrefix("Membership/") }.isEmpty)
        #expect(Set(common.keys.filter { $0.hasPrefix("Team/") }) == Set(world.teams.map { "Team/\($0.text)" }))
        for (number, id) in world.ids.enumerated() {
            #expect(common["Person/\(id.text)"]?.contains("\"worker\"") == true, "\(number)")
        }
        for (team, task) in zip(world.teams, world.tasks) {
            let fields = try world.fixture.stored("/teams/\(team.text)")["FieldTask/\(task.text)"]
            #expect(fields?.contains("\"kept\"") == true && fields?.contains("assignee") == false)
        }
        #expect(try world.fixture.stored("/manager").count == 1)
    }
}
