import Essentials
import FoundationEssentials

/// The devices of an organisation's people, with the entries that each person writes.
struct Fleet: Sendable {
    struct Member: Sendable {
        let device: Device
        let plans: [EntryPlan]
        var absence: Author.Absence?
    }

    let members: [Member]

    private static let refreshParallelMax = 16

    /// Makes a device for every person.
    ///
    /// - Parameter seed: The seed of the times without a connection; `nil`: every device is always online.
    static func make(
        _ organisation: Organisation, seed: UInt64?, hasDeletions: Bool = true, gateway: GatewayClient,
        tokens: DeviceTokens
    ) async throws -> Fleet {
        var random = SplitMix64(seed: seed ?? 0)
        let entries = Dictionary(grouping: organisation.entries, by: \.person)
        let devices = try await Device.make(for: organisation.people, gateway: gateway, tokens: tokens)
        return Fleet(
            members: devices.enumerated().map { index, device in
                let plans = (entries[device.person.id] ?? []).flatMap(EntryPlan.plans)
                return Member(
                    device: device, plans: plans.filter { hasDeletions || !$0.variant.isMistake },
                    absence: seed != nil && index % 3 == 2 ? absence(using: &random) : nil)
            })
    }

    private static func absence(using random: inout SplitMix64) -> Author.Absence {
        Author.Absence(
            afterShare: .random(in: 0.3...0.6, using: &random),
            duration: .milliseconds(Int.random(in: 1500...5000, using: &random)))
    }

    var planCount: Int { members.reduce(0) { $0 + $1.plans.count } }

    /// Runs all members until their entries are finished.
    ///
    /// - Parameters:
    ///   - parallelMax: Maximum number of concurrent members.
    ///   - pace: If given, members write one entry at a time, and begin one after the other.
    /// - Returns: The members as authors, after their work.
    func work(
        parallelMax: Int = .max, tally: EntryTally, pace: Author.Pace? = nil
    ) async throws -> [Author] {
        try await concurrentMap(Array(members.indices), parallelMax: parallelMax) { index in
            let member = members[index]
            if let pace { try await Task.sleep(for: pace.pause * index / members.count) }
            return try await Device.whileRunning([member.device]) {
                var author = Author(
                    device: member.device, plans: member.plans, absence: member.absence, tally: tally, pace: pace)
                try await author.work()
                return author
            }
        }
    }

    /// Lets every device fetch what is new, a few at a time.
    ///
    /// - Throws: The first failure; the others are refreshed by the next attempt.
    func refresh() async throws {
        try await concurrentMap(members, parallelMax: Self.refreshParallelMax) { try await $0.device.refresh() }
    }

    /// The last error of each device.
    func errors() async -> [String] {
        var errors: [String] = []
        for device in members.map(\.device) {
            guard let error = await device.lastError else { continue }
            errors.append("\(device.person.email) at \(await device.gatewayURL): \(error)")
        }
        return errors
    }
}

extension Device {
    /// Makes a device for every person, in their order.
    static func make(
        for people: [Organisation.Person], gateway: GatewayClient, tokens: DeviceTokens
    ) async throws -> [Device] {
        let granted = try await tokens.tokens(for: people)
        return try zip(people, granted).map { person, token in
            try Device(person: person, gateway: gateway, tokens: tokens, token: token, clientID: UUID())
        }
    }

    /// Runs all of them while `body` runs.
    static func whileRunning<Success: Sendable>(
        _ devices: [any FieldworkDevice], _ body: @escaping @Sendable () async throws -> Success
    ) async throws -> Success {
        try await withThrowingTaskGroup(of: Success?.self) { group in
            for device in devices {
                group.addTask {
                    try await device.run()
                    return nil
                }
            }
            group.addTask { try await body() }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }
}

extension Organisation.Person {
    /// A person without a record in the back end.
    init(_ email: String) {
        self.init(
            id: email, name: email, email: email, active: nil, personWorkAgreementExternalId: "", companyCode: "",
            businessPartnerUuid: StableID.uuid("person", email))
    }
}
