import Algorithms
import DeviceClient
import FoundationEssentials
import Model

/// A person with a device, who drafts, corrects, submits, edits and deletes entries until each is as planned.
struct Author: Sendable {
    /// A time without a connection.
    struct Absence: Equatable, Sendable {
        /// After this share of the drafts, from 0 to 1.
        let afterShare: Double
        let duration: Duration

        func isDue(at index: Int, of count: Int) -> Bool { Double(index) >= afterShare * Double(count) }
    }

    /// One entry at a time until `isOver`; the remaining entries are never written.
    struct Pace: Sendable {
        /// Time between two entries.
        let pause: Duration
        let isOver: @Sendable () -> Bool
    }

    /// Entries that are written before their mutations are sent.
    static let portionCount = 20

    let device: Device
    private let tally: EntryTally
    private let absence: Absence?
    private let pace: Pace?
    private let order: [UUID]
    private var scripts: [UUID: EntryScript]
    private var statuses: [UUID: EntryStatus] = [:]
    private var unfinishedCount: Int
    /// The responses to mutations, by their numbers.
    private(set) var answers: [Int64: MutationOutcome] = [:]
    /// Mutations with two different responses.
    private(set) var conflictingResponses: [Int64] = []

    init(device: Device, plans: [EntryPlan], absence: Absence?, tally: EntryTally, pace: Pace? = nil) {
        self.device = device
        self.tally = tally
        self.absence = absence
        self.pace = pace
        order = plans.map(\.id)
        scripts = Dictionary(plans.map { ($0.id, EntryScript($0)) }, uniquingKeysWith: { first, _ in first })
        unfinishedCount = order.count
    }

    /// The reasons for which entries did not end as planned, by their ids.
    var failures: [UUID: String] {
        scripts.compactMapValues { script in
            if case .failed(let reason) = script.phase { return reason }
            return nil
        }
    }

    /// The plans of entries that were begun.
    var begun: [EntryPlan] { order.compactMap { scripts[$0]?.plan } }

    /// Works until every entry is finished, or the task is cancelled.
    ///
    /// - Throws: `CancellationError` if the task is cancelled before the device has the person's choices, or between
    ///   two paced entries.
    mutating func work() async throws {
        let choices = try await device.value { ReportingChoices($0.copy) }
        try await begin()
        if let pace { try await write(choices, pace) } else { try await writePortions(choices) }
        while unfinishedCount > 0 {
            guard await device.waitForUpdates() else { return }
            try await processUpdates()
        }
    }

    private mutating func writePortions(_ choices: ReportingChoices) async throws {
        // A person with few remaining entries, as in a second run, stays online.
        let absence = unfinishedCount * 2 > order.count ? absence : nil
        var reconnection: Task<Void, any Error>?
        for portion in order.chunks(ofCount: Self.portionCount) {
            if let absence, reconnection == nil, absence.isDue(at: portion.startIndex, of: order.count) {
                reconnection = await device.leave(for: absence.duration)
            }
            try await write(portion, choices)
            guard try await waitForRoom() else { return }
        }
    }

    private mutating func write(_ choices: ReportingChoices, _ pace: Pace) async throws {
        for index in order.indices {
            if pace.isOver() {
                for id in order[index...] { scripts[id] = nil }
                unfinishedCount -= order.count - index
                return
            }
            try await write(order[index...index], choices)
            try await Task.sleep(for: pace.pause)
            try await processUpdates()
        }
    }

    /// Continues from the entries of an earlier run.
    private mutating func begin() async throws {
        _ = await device.takeUpdates()
        let copy = await device.copy
        for id in order {
            let seen = copy[device.realm, ObjectID(kind: .timeEntry, id: id)].flatMap { SeenEntry($0) }
            scripts[id]?.begin(seen: seen)
            try await evaluate(id, seen)
        }
    }

    private mutating func write(_ portion: ArraySlice<UUID>, _ choices: ReportingChoices) async throws {
        var mutations: [Mutation] = []
        var open = Array(portion)
        while !open.isEmpty {
            for id in open {
                guard var script = scripts[id] else { continue }
                let entry = script.plan.entry
                guard let choice = choices.choice(project: entry.project, accountingCode: entry.accountingCode) else {
                    script.giveUp("\(entry.project) with \(entry.accountingCode) cannot be chosen on the device")
                    update(script)
                    continue
                }
                if let mutation = try script.next(draft: { text, seconds, isSubmitted in
                    try Self.draft(entry, choice, text: text, seconds: seconds, isSubmitted: isSubmitted)
                }) {
                    mutations.append(mutation)
                }
                update(script)
            }
            open.removeAll { scripts[$0]?.isWaiting ?? true }
        }
        try await device.enqueue(mutations)
    }

    /// The fields of a draft as an app writes them.
    static func draft(
        _ entry: PlannedEntry, _ choice: ReportingChoices.Choice, text: String, seconds: Int, isSubmitted: Bool
    ) throws -> [UInt8] {
        let fields = TimeEntry(
            status: .draft, text: text, reportingTemplate: choice.template, reporting: choice.reporting,
            timeType: .duration, entryDate: entry.day, durationSeconds: seconds, createdOn: entry.day,
            submitRequested: isSubmitted ? true : nil)
        return Array(try JSONEncoder().encode(fields))
    }

    /// Waits while the queue is long, unless the device is offline.
    ///
    /// - Returns: False when the task was cancelled.
    private mutating func waitForRoom() async throws -> Bool {
        while await device.isOnline, await device.waitingCount > Device.batchCountMax {
            guard await device.waitForUpdates() else { return false }
            try await processUpdates()
        }
        return true
    }

    private mutating func processUpdates() async throws {
        let updates = await device.takeUpdates()
        tally.answered(updates.answers.count)
        var touched = Set(updates.changed.lazy.map(\.object).filter { $0.kind == .timeEntry }.map(\.id))
        for answer in updates.answers {
            guard let outcome = answer.outcome else { continue }
            if let before = answers.updateValue(outcome, forKey: answer.sequence), before != outcome {
                conflictingResponses.append(answer.sequence)
            }
            guard var script = scripts[answer.mutation.id] else { continue }
            script.take(outcome, of: answer.mutation)
            update(script)
            // The copy may have the effect of a mutation before its response arrives.
            if script.awaitsResponse { touched.insert(answer.mutation.id) }
        }
        guard !touched.isEmpty else { return }
        let seen = await device.entries(touched)
        for id in touched {
            // After a restore the entry may be in flight again.
            if seen[id] == nil, scripts[id]?.phase == .submitted, await device.hasUnconfirmedChanges(id) { continue }
            try await evaluate(id, seen[id])
        }
    }

    private mutating func evaluate(_ id: UUID, _ seen: SeenEntry?) async throws {
        guard var script = scripts[id] else { return }
        tally.moved(from: statuses[id], to: seen?.status)
        statuses[id] = seen?.status
        let mutation = script.evaluate(seen)
        update(script)
        if let mutation { try await device.enqueue([mutation]) }
    }

    private mutating func update(_ script: EntryScript) {
        let wasFinished = scripts[script.plan.id]?.isFinished ?? true
        scripts[script.plan.id] = script
        guard script.isFinished, !wasFinished else { return }
        unfinishedCount -= 1
        tally.finish(1)
    }
}
