import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// All people with their devices.
struct DemoFleet: Sendable {
    struct Member: Sendable {
        let device: Device
        let plans: [EntryPlan]
        let absence: Author.Absence?
    }

    let members: [Member]

    /// Devices for everybody who has entries, or who is a person of the organisation without any.
    static func make(
        _ organisation: Organisation, seed: UInt64, hasDeletions: Bool, gateway: GatewayClient, tokens: DeviceTokens
    ) async throws -> DemoFleet {
        var random = SplitMix64(seed: seed)
        let entries = Dictionary(grouping: organisation.entries, by: \.person)
        let granted = try await tokens.tokens(for: organisation.people)
        return DemoFleet(
            members: try zip(organisation.people, granted).enumerated().map { index, item in
                let device = try Device(
                    person: item.0, gateway: gateway, tokens: tokens, token: item.1, clientID: UUID())
                let plans = (entries[item.0.id] ?? []).flatMap(EntryPlan.plans)
                return Member(
                    device: device, plans: plans.filter { hasDeletions || !$0.variant.isMistake },
                    absence: index % 3 == 2 ? absence(using: &random) : nil)
            })
    }

    private static func absence(using random: inout SplitMix64) -> Author.Absence {
        Author.Absence(
            afterShare: .random(in: 0.3...0.6, using: &random),
            duration: .milliseconds(Int.random(in: 1500...5000, using: &random)))
    }

    var planCount: Int { members.reduce(0) { $0 + $1.plans.count } }

    /// Lets everybody work until all is done, at most `parallelMax` at a time.
    ///
    /// - Returns: What went wrong with entries, by id.
    func work(parallelMax: Int, tally: FlowTally) async throws -> [UUID: String] {
        try await withThrowingTaskGroup(of: [UUID: String].self) { group in
            var failures: [UUID: String] = [:]
            for (index, member) in members.enumerated() {
                if index >= parallelMax, let some = try await group.next() { failures.merge(some) { $1 } }
                group.addTask { try await Self.work(member, tally) }
            }
            for try await some in group { failures.merge(some) { $1 } }
            return failures
        }
    }

    private static func work(_ member: Member, _ tally: FlowTally) async throws -> [UUID: String] {
        try await Device.whileRunning([member.device]) {
            var author = Author(device: member.device, plans: member.plans, absence: member.absence, tally: tally)
            try await author.work()
            return author.failures
        }
    }

    /// Has every device fetch what is new, a few at a time.
    ///
    /// - Throws: The first failure; the others are refreshed by the next attempt.
    func refresh() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, member) in members.enumerated() {
                if index >= Self.refreshParallelMax { try await group.next() }
                group.addTask { try await member.device.refresh() }
            }
            try await group.waitForAll()
        }
    }

    private static let refreshParallelMax = 16
}
