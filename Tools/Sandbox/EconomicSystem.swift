import Essentials
import FoundationEssentials
import Model
import Synchronization

/// The state of the e-conomic emulator: master data, time entries, switches, counters.
final class EconomicSystem: SandboxSystem {
    /// A line of the journal.
    enum Line: Codable {
        case organisation(EconomicOrganisation)
        case record(EconomicRecord)
    }

    struct State: ~Copyable {
        var master = EconomicMasterData()
        var records = EconomicRecords()
        var dials = SandboxDials<EconomicSwitches>()
        var journal: SandboxJournal<Line>?
    }

    private let state: Mutex<State>

    /// - Parameter journalPath: Where time entries survive a restart; nil keeps them in memory only.
    init(journalPath: String?) throws {
        var state = State()
        if let journalPath {
            var master = EconomicMasterData()
            var records = EconomicRecords()
            state.journal = try SandboxJournal<Line>(path: journalPath) { line in
                switch line {
                case .organisation(let organisation): master.add(organisation)
                case .record(let record): records.put(record, nowMs: .max)
                }
            }
            state.master = master
            state.records = records
        }
        self.state = Mutex(state)
    }

    // MARK: Master data, dials

    func load(_ organisation: EconomicOrganisation) {
        state.withLock {
            $0.journal?.append(.organisation(organisation))
            $0.master.add(organisation)
        }
    }

    var master: EconomicMasterData { state.withLock { $0.master } }

    func withDials<Value: Sendable>(_ use: (inout SandboxDials<EconomicSwitches>) throws -> Value) rethrows -> Value {
        try state.withLock { try use(&$0.dials) }
    }

    var recordCount: Int { state.withLock { $0.records.count } }

    // MARK: Time entries

    /// Creates a time entry.
    ///
    /// - Parameter isTrial: Only checks the request.
    /// - Returns: Its number; 0 of a trial.
    func create(_ request: EconomicEntryRequest, isTrial: Bool) throws(EconomicRules.Refusal) -> Int {
        try withState { state throws(EconomicRules.Refusal) in
            var record = try EconomicRules.checked(
                request, state.master, lockedThrough: state.dials.switches.lockedThrough)
            if isTrial { return 0 }
            record.text = state.dials.switches.texts.stored(record.text)
            record.number = state.records.nextNumber
            state.save(record)
            return record.number
        }
    }

    /// Changes a time entry.
    func update(_ request: EconomicEntryRequest, isTrial: Bool) throws(EconomicRules.Refusal) {
        try withState { state throws(EconomicRules.Refusal) in
            let locked = state.dials.switches.lockedThrough
            state.interfere(with: request.number)
            let old = try EconomicRules.existing(request.number, state.records, lockedThrough: locked)
            try EconomicRules.checkVersion(request, of: old)
            var new = try EconomicRules.checked(request, state.master, lockedThrough: locked)
            new.text = state.dials.switches.texts.stored(new.text)
            (new.number, new.version, new.isReconciled) = (old.number, old.version, old.isReconciled)
            if !isTrial { state.save(new) }
        }
    }

    /// Deletes a time entry.
    func delete(_ number: Int, isTrial: Bool) throws(EconomicRules.Refusal) {
        try withState { state throws(EconomicRules.Refusal) in
            var record = try EconomicRules.existing(
                number, state.records, lockedThrough: state.dials.switches.lockedThrough)
            record.isDeleted = true
            if !isTrial { state.save(record) }
        }
    }

    /// Approves time entries, all or none.
    func approve(_ numbers: [Int], isTrial: Bool) throws(EconomicRules.Refusal) {
        try withState { state throws(EconomicRules.Refusal) in
            var records: [EconomicRecord] = []
            let locked = state.dials.switches.lockedThrough
            for number in numbers {
                records.append(try EconomicRules.existing(number, state.records, lockedThrough: locked))
            }
            if isTrial { return }
            for var record in records {
                record.isApproved = true
                state.save(record)
            }
        }
    }

    /// Another user's change of a time entry, without any rule; `nil` adds one.
    ///
    /// - Returns: Its number; `nil` if there is no such entry.
    func save(_ number: Int?, _ change: (inout EconomicRecord) -> Void) -> Int? {
        state.withLock { state in
            var record = EconomicRecord(
                number: state.records.nextNumber, employeeNumber: 0, projectNumber: 0, activityNumber: 0,
                date: Day(daysSinceEpoch: 0), numberOfHours: 0, text: "")
            if let number {
                guard let known = state.records[number], !known.isDeleted else { return nil }
                record = known
            }
            change(&record)
            state.save(record)
            return record.number
        }
    }

    /// The time entry as it is now; nil when there is none.
    func record(_ number: Int) -> EconomicRecord? {
        state.withLock { $0.records[number] }.flatMap { $0.isDeleted ? nil : $0 }
    }

    /// A page of the time entries that a listing shows, and the number with which the next one begins.
    func page(_ filter: EconomicFilter?, from first: Int) -> (rows: [EconomicRecord], next: Int?) {
        state.withLock { state in
            var rows: [EconomicRecord] = []
            let now = State.nowMs()
            for number in state.records.numbers(ofEmployee: filter?.required("employeeNumber"), from: first) {
                guard let record = state.records.shown(number, atMs: now),
                    filter?.matches(record.value) ?? true
                else { continue }
                if rows.count == state.dials.switches.pageItemsMax { return (rows, number) }
                rows.append(record)
            }
            return (rows, nil)
        }
    }

    /// At most `countMax` time entries with numbers above `number`, deleted ones too.
    func records(after number: Int, countMax: Int) -> [EconomicRecord] {
        state.withLock { state in
            state.records.numbers(ofEmployee: nil, from: number + 1).prefix(countMax).compactMap { state.records[$0] }
        }
    }

    private func withState<Result: Sendable>(
        _ body: (inout sending State) throws(EconomicRules.Refusal) -> sending Result
    ) throws(EconomicRules.Refusal) -> Result {
        try state.withLock(body)
    }
}

extension EconomicSystem.State {
    static func nowMs() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    /// A new state of a record, or a new record.
    fileprivate mutating func save(_ record: EconomicRecord) {
        let now = Self.nowMs()
        var record = record
        record.version += 1
        record.lastUpdatedSeconds = Int(now / 1_000) + dials.switches.clockSkewSeconds
        record.visibleAtMs = now + Int64(dials.switches.visibleAfterMs)
        journal?.append(.record(record))
        records.put(record, nowMs: now)
    }

    /// Simulates another user's write before a PUT.
    fileprivate mutating func interfere(with number: Int?) {
        guard var record = number.flatMap({ records[$0] }) else { return }
        if dials.switches.changesBeforePut > 0 {
            dials.switches.changesBeforePut -= 1
            record.numberOfHours += 1
            save(record)
        } else if dials.switches.touchesBeforePut > 0 {
            dials.switches.touchesBeforePut -= 1
            save(record)
        }
    }
}

extension EconomicRecord {
    /// The properties that can be filtered.
    static let filterable: Set<String> = [
        "number", "employeeNumber", "projectNumber", "activityNumber", "date", "numberOfHours", "text", "isApproved",
        "isReconciled", "lastUpdated",
    ]

    /// The value of a property in a filter.
    func value(_ property: String) -> EconomicFilter.Value {
        switch property {
        case "number": .number(Double(number))
        case "employeeNumber": .number(Double(employeeNumber))
        case "projectNumber": .number(Double(projectNumber))
        case "activityNumber": .number(Double(activityNumber))
        case "numberOfHours": .number(numberOfHours)
        case "date": .text(dateTime)
        case "isApproved": .text(isApproved ? "true" : "false")
        case "isReconciled": .text(isReconciled ? "true" : "false")
        case "lastUpdated": .text(lastUpdated)
        default: .text(text)
        }
    }
}
