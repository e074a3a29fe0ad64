import Algorithms
import DeviceClient
import FoundationEssentials
import Model

/// A person with a device: drafts, corrects, submits, edits and deletes entries until each is as planned.
struct Author {
    /// When and how long the person is without a connection.
    struct Absence: Equatable, Sendable {
        /// After this share of the drafts, from 0 to 1.
        let afterShare: Double
        let duration: Duration
    }

    /// One entry after the other, until it is over: what is not written by then is never written.
    struct Pace: Sendable {
        /// From one entry to the next.
        let pause: Duration
        let isOver: @Sendable () -> Bool
    }

    /// Entries that are written in one go before their mutations are sent.
    static let portionCount = 20

    let device: Device
    private let tally: FlowTally
    private let absence: Absence?
    private let pace: Pace?
    private let order: [UUID]
    private var scripts: [UUID: EntryScript]
    private var statuses: [UUID: EntryStatus] = [:]
    private var unfinishedCount: Int
    /// What the gateway answered, by the mutations' numbers.
    private(set) var answers: [Int64: MutationOutcome] = [:]
    /// Mutations that were answered anew, and otherwise.
    private(set) var changedAnswers: [Int64] = []

    init(device: Device, plans: [EntryPlan], absence: Absence?, tally: FlowTally, pace: Pace? = nil) {
        self.device = device
        self.tally = tally
        self.absence = absence
        self.pace = pace
        order = plans.map(\.id)
        scripts = Dictionary(plans.map { ($0.id, EntryScript($0)) }, uniquingKeysWith: { first, _ in first })
        unfinishedCount = order.count
    }

    /// What kept entries from ending as planned, by their ids.
    var failures: [UUID: String] {
        scripts.compactMapValues { script in
            if case .failed(let reason) = script.phase { return reason }
            return nil
        }
    }

    /// Entries that are still on their way.
    var unfinished: [UUID] { order.filter { scripts[$0]?.isFinished == false } }

    /// The plans of what was begun, or is not over.
    var begun: [EntryPlan] { order.compactMap { scripts[$0]?.plan } }

    /// Works until every entry is finished, or the task is cancelled.
    mutating func work() async throws {
        guard let choices = await choices() else { return }
        try await begin()
        if let pace { return try await work(choices, pace) }
        // Somebody with little left to do, as in a second run, stays.
        let absence = unfinishedCount * 2 > order.count ? absence : nil
        var wayBack: Task<Void, any Error>?
        for portion in order.chunks(ofCount: Self.portionCount) {
            if let absence, wayBack == nil, Double(portion.startIndex) >= absence.afterShare * Double(order.count) {
                wayBack = await device.leave(for: absence.duration)
            }
            try await write(portion, choices)
            guard try await waitForRoom() else { return }
        }
        while unfinishedCount > 0 {
            guard await device.hasNews() else { return }
            try await hear()
        }
    }

    /// Writes at a pace, and waits for what comes of it.
    private mutating func work(_ choices: ReportingChoices, _ pace: Pace) async throws {
        for index in order.indices {
            if pace.isOver() {
                for id in order[index...] { scripts[id] = nil }
                unfinishedCount -= order.count - index
                break
            }
            try await write(order[index...index], choices)
            try await Task.sleep(for: pace.pause)
            try await hear()
        }
        while unfinishedCount > 0 {
            guard await device.hasNews() else { return }
            try await hear()
        }
    }

    /// The choices, once the device's copy has them all.
    private mutating func choices() async -> ReportingChoices? {
        while true {
            if let choices = ReportingChoices(await device.copy) { return choices }
            guard await device.hasNews() else { return nil }
        }
    }

    /// Takes up what an earlier run left.
    private mutating func begin() async throws {
        _ = await device.takeNews()
        let copy = await device.copy
        for id in order {
            let seen = copy[device.realm, ObjectID(kind: .timeEntry, id: id)].flatMap { SeenEntry($0) }
            scripts[id]?.begin(seen: seen)
            try await look(at: id, seen)
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

    /// Waits while the queue is long, unless nobody takes from it.
    ///
    /// - Returns: False when the task was cancelled.
    private mutating func waitForRoom() async throws -> Bool {
        while await device.isOnline, await device.waitingCount > Device.batchCountMax {
            guard await device.hasNews() else { return false }
            try await hear()
        }
        return true
    }

    private mutating func hear() async throws {
        let news = await device.takeNews()
        tally.answered(news.answers.count)
        for answer in news.answers {
            guard let outcome = answer.outcome else { continue }
            if let before = answers.updateValue(outcome, forKey: answer.sequence), before != outcome {
                changedAnswers.append(answer.sequence)
            }
        }
        var touched = Set(news.changed.lazy.map(\.object).filter { $0.kind == .timeEntry }.map(\.id))
        for answer in news.answers {
            guard let outcome = answer.outcome, var script = scripts[answer.mutation.id] else { continue }
            script.hear(outcome, of: answer.mutation)
            update(script)
            // The device may have shown what followed from a mutation before it heard that it was accepted.
            if script.awaitsAnswer { touched.insert(answer.mutation.id) }
        }
        guard !touched.isEmpty else { return }
        let seen = await device.entries(touched)
        for id in touched {
            // After a restore it may be on its way again.
            if seen[id] == nil, scripts[id]?.phase == .submitted, await device.isUnsettled(id) { continue }
            try await look(at: id, seen[id])
        }
    }

    private mutating func look(at id: UUID, _ seen: SeenEntry?) async throws {
        guard var script = scripts[id] else { return }
        tally.moved(from: statuses[id], to: seen?.status)
        statuses[id] = seen?.status
        let mutation = script.look(seen)
        update(script)
        if let mutation { try await device.enqueue([mutation]) }
    }

    private mutating func update(_ script: EntryScript) {
        let wasFinished = scripts[script.plan.id]?.isFinished ?? true
        scripts[script.plan.id] = script
        guard script.isFinished, !wasFinished else { return }
        unfinishedCount -= 1
        tally.finished(1)
    }
}
