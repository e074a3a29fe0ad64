import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Synchronization

/// The devices that work while their environment is moved.
final class MoveFleet: Sendable {
    /// What a device did.
    struct Work: Sendable {
        let device: Device
        let plans: [EntryPlan]
        let failures: [UUID: String]
        let answers: [Int64: MutationOutcome]
        let changedAnswers: [Int64]
    }

    let devices: [Device]
    let tally = FlowTally()
    private let plans: [[EntryPlan]]
    private let pause: Duration
    private let isOver = Mutex(false)

    /// How often a person's weeks are written again, at later days.
    private static let roundCount = 16
    /// As long as the organisation's weeks.
    private static let roundDays = 7 * GeneratedOrganisation.weekCount

    init(_ organisation: Organisation, pause: Duration, gateway: GatewayClient, tokens: DeviceTokens) async throws {
        let granted = try await tokens.tokens(for: organisation.people)
        devices = try zip(organisation.people, granted).map { person, token in
            try Device(person: person, gateway: gateway, tokens: tokens, token: token, clientID: UUID())
        }
        let entries = Dictionary(grouping: organisation.entries, by: \.person)
        plans = organisation.people.map { person in
            (0..<Self.roundCount).flatMap { Self.entries(entries[person.id] ?? [], round: $0) }
                .flatMap(EntryPlan.plans)
        }
        self.pause = pause
    }

    /// Entries of other days, which say the same.
    private static func entries(_ entries: [PlannedEntry], round: Int) -> [PlannedEntry] {
        if round == 0 { return entries }
        // Who began late has worked by then.
        return entries.filter { $0.expectation != .invalid(.notActive) }.map { entry in
            PlannedEntry(
                id: StableID.uuid("round-\(round)", entry.id.text), person: entry.person,
                day: entry.day.adding(days: round * roundDays), durationSeconds: entry.durationSeconds,
                project: entry.project, accountingCode: entry.accountingCode, text: entry.text,
                sourceRow: entry.sourceRow, expectation: entry.expectation)
        }
    }

    /// Works until it is told that it is over, and all that was begun is finished.
    func work() async throws -> [Work] {
        let pace = Author.Pace(pause: pause, isOver: { [self] in isOver.withLock { $0 } })
        return try await withThrowingTaskGroup(of: (Int, Work).self) { group in
            for (index, device) in devices.enumerated() {
                group.addTask { [self] in
                    // They do not write in the same moment.
                    try await Task.sleep(for: pause * index / devices.count)
                    return try await Device.whileRunning([device]) { [self] in
                        var author = Author(
                            device: device, plans: plans[index], absence: nil, tally: tally, pace: pace)
                        try await author.work()
                        let work = Work(
                            device: device, plans: author.begun, failures: author.failures, answers: author.answers,
                            changedAnswers: author.changedAnswers)
                        return (index, work)
                    }
                }
            }
            var works: [(Int, Work)] = []
            for try await work in group { works.append(work) }
            return works.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Nothing new is begun.
    func end() { isOver.withLock { $0 = true } }

    /// The longest time of each device from a first try to an answer, since it was asked the last time, in seconds.
    func takePauses() async -> [Double] {
        var pauses: [Double] = []
        for device in devices { pauses.append(await device.takeLongestSending().inSeconds) }
        return pauses
    }

    /// The highest number of each device that was answered.
    func answered() async -> [Int64] {
        var numbers: [Int64] = []
        for device in devices {
            numbers.append(await device.queue.remembered.last { $0.outcome != nil }?.sequence ?? 0)
        }
        return numbers
    }

    /// How many devices speak to a gateway, and had an answer beyond `numbers`.
    func count(at url: String, beyond numbers: [Int64]) async -> Int {
        var count = 0
        for (number, device) in zip(numbers, devices) {
            let answered = await device.queue.remembered.last { $0.outcome != nil }?.sequence ?? 0
            if await device.gatewayURL == url, answered > number { count += 1 }
        }
        return count
    }

    /// What each device met with last.
    func troubles() async -> [String] {
        var troubles: [String] = []
        for device in devices {
            troubles.append("\(device.person.email) at \(await device.gatewayURL): \(await device.trouble ?? "")")
        }
        return troubles
    }
}
