import Essentials
import Model

typealias EconomicSystem = EmulatedSystem<EconomicState>

/// The state of the e-conomic emulator: master data and time entries.
struct EconomicState: EmulatorState {
    /// A line of the journal.
    enum Line: Codable {
        case organisation(EconomicOrganisation)
        case record(EconomicRecord)
    }

    private(set) var master = EconomicMasterData()
    private(set) var records = EconomicRecords()
    var injector = FaultInjector<EconomicSwitches>()
    var journal: Journal<Line>?

    var recordCount: Int { records.count }

    private static var nowMs: Int64 { Timestamp.now().millisecondsSinceEpoch }

    mutating func apply(_ line: Line) {
        switch line {
        case .organisation(let organisation): master.add(organisation)
        case .record(let record): records.put(record, nowMs: Self.nowMs)
        }
    }

    mutating func load(_ organisation: EconomicOrganisation) { write(.organisation(organisation)) }

    // MARK: Time entries

    /// Creates a time entry.
    ///
    /// - Parameter isTrial: Only checks the request.
    /// - Returns: Its number; 0 of a trial.
    mutating func create(_ request: EconomicEntryRequest, isTrial: Bool) throws(EconomicRules.Refusal) -> Int {
        var record = try EconomicRules.checked(request, master, lockedThrough: switches.lockedThrough)
        if isTrial { return 0 }
        record.text = switches.texts.stored(record.text)
        record.number = records.nextNumber
        save(record)
        return record.number
    }

    /// Changes a time entry.
    mutating func update(_ request: EconomicEntryRequest, isTrial: Bool) throws(EconomicRules.Refusal) {
        interfere(with: request.number)
        let old = try existing(request.number)
        try EconomicRules.checkVersion(request, of: old)
        var new = try EconomicRules.checked(request, master, lockedThrough: switches.lockedThrough)
        new.text = switches.texts.stored(new.text)
        (new.number, new.version, new.isReconciled) = (old.number, old.version, old.isReconciled)
        if !isTrial { save(new) }
    }

    /// Deletes a time entry.
    mutating func delete(_ number: Int, isTrial: Bool) throws(EconomicRules.Refusal) {
        var record = try existing(number)
        record.isDeleted = true
        if !isTrial { save(record) }
    }

    private func existing(_ number: Int?) throws(EconomicRules.Refusal) -> EconomicRecord {
        try EconomicRules.existing(number, records, lockedThrough: switches.lockedThrough)
    }

    /// Another user's change of a time entry, without any rule; `nil` adds one.
    ///
    /// - Returns: Its number; `nil` if there is no such entry.
    mutating func save(_ number: Int?, _ change: (inout EconomicRecord) -> Void) -> Int? {
        var record = EconomicRecord(
            number: records.nextNumber, employeeNumber: 0, projectNumber: 0, activityNumber: 0,
            date: Day(daysSinceEpoch: 0), numberOfHours: 0, text: "")
        if let number {
            guard let known = self.record(number) else { return nil }
            record = known
        }
        change(&record)
        save(record)
        return record.number
    }

    /// The current time entry; `nil` if there is none.
    func record(_ number: Int) -> EconomicRecord? { records[number].flatMap { $0.isDeleted ? nil : $0 } }

    /// A page of the time entries that a listing shows, and the number with which the next one begins.
    func page(_ filter: Filter?, from first: Int) -> (rows: [EconomicRecord], next: Int?) {
        var rows: [EconomicRecord] = []
        let now = Self.nowMs
        let employee = filter?.required("employeeNumber").flatMap { Int($0) }
        for number in records.numbers(ofEmployee: employee, from: first) {
            guard let record = records.shown(number, atMs: now),
                filter?.matches({ EconomicRecord.filterable[$0]?(record) }) ?? true
            else { continue }
            if rows.count == switches.pageItemsMax { return (rows, number) }
            rows.append(record)
        }
        return (rows, nil)
    }

    /// A new state of a record, or a new record.
    private mutating func save(_ record: EconomicRecord) {
        let now = Self.nowMs
        var record = record
        record.version += 1
        record.lastUpdatedSeconds = Int(now / 1_000) + switches.clockSkewSeconds
        record.visibleAtMs = now + Int64(switches.visibleAfterMs)
        write(.record(record))
    }

    /// Simulates another user's write before a PUT.
    private mutating func interfere(with number: Int?) {
        guard var record = number.flatMap({ records[$0] }) else { return }
        if switches.changesBeforePut > 0 {
            switches.changesBeforePut -= 1
            record.numberOfHours += 1
            save(record)
        } else if switches.touchesBeforePut > 0 {
            switches.touchesBeforePut -= 1
            save(record)
        }
    }
}

/// A time entry as the sandbox keeps it, and as a line of its journal.
struct EconomicRecord: Codable, Equatable, Sendable {
    var number: Int
    var employeeNumber: Int
    var projectNumber: Int
    var activityNumber: Int
    var date: Day
    var numberOfHours: Double
    var text: String
    var isApproved = false
    var isReconciled = false
    var isDeleted = false
    /// Grows with every change; `objectVersion` names it.
    var version = 1
    /// Seconds since 1970 by the sandbox's own clock, which may be wrong.
    var lastUpdatedSeconds = 0
    /// Milliseconds since 1970, by a clock that is right, from which listings show this state.
    var visibleAtMs: Int64 = 0

    /// Opaque to clients.
    var objectVersion: String { "v\(number).\(version)" }

    var dateTime: String { "\(date)T00:00:00Z" }

    var lastUpdated: String {
        "\(Timestamp(millisecondsSinceEpoch: Int64(lastUpdatedSeconds) * 1_000).description.prefix(19))Z"
    }

    /// The properties that can be filtered, with their values.
    static let filterable: [String: @Sendable (EconomicRecord) -> Filter.Value] = [
        "number": { .number(Double($0.number)) },
        "employeeNumber": { .number(Double($0.employeeNumber)) },
        "projectNumber": { .number(Double($0.projectNumber)) },
        "activityNumber": { .number(Double($0.activityNumber)) },
        "date": { .text($0.dateTime) },
        "numberOfHours": { .number($0.numberOfHours) },
        "text": { .text($0.text) },
        "isApproved": { .text($0.isApproved ? "true" : "false") },
        "isReconciled": { .text($0.isReconciled ? "true" : "false") },
        "lastUpdated": { .text($0.lastUpdated) },
    ]
}

/// The body of a POST or a PUT.
struct EconomicEntryRequest: Decodable, Sendable {
    var number: Int?
    var employeeNumber: Int?
    var projectNumber: Int?
    var activityNumber: Int?
    var date: String?
    var numberOfHours: Double?
    var text: String?
    var objectVersion: String?

    var day: Day? { date.flatMap { Day(String($0.prefix(10))) } }
}

/// All time entries, each with the states that a listing may still show.
struct EconomicRecords {
    /// Number − 1 is the index; the newest state is the last.
    private var states: [[EconomicRecord]] = []
    private var byEmployee: [Int: [Int]] = [:]

    /// Of entries, deleted ones too.
    var count: Int { states.count }

    var nextNumber: Int { states.count + 1 }

    /// The newest state, which may be that the entry is deleted.
    subscript(number: Int) -> EconomicRecord? {
        states.indices.contains(number - 1) ? states[number - 1].last : nil
    }

    /// The entry as a listing shows it at a time; `nil` if it is not yet visible, or deleted.
    func shown(_ number: Int, atMs time: Int64) -> EconomicRecord? {
        guard states.indices.contains(number - 1),
            let state = states[number - 1].last(where: { $0.visibleAtMs <= time })
        else { return nil }
        return state.isDeleted ? nil : state
    }

    /// Adds an entry, or a newer state of it. Its employee stays the same.
    mutating func put(_ record: EconomicRecord, nowMs: Int64) {
        guard self[record.number] != nil else {
            precondition(record.number == nextNumber, "numbers have no gaps")
            states.append([record])
            byEmployee[record.employeeNumber, default: []].append(record.number)
            return
        }
        // Of the states that are visible only the newest is ever shown.
        let visible = states[record.number - 1].lastIndex { $0.visibleAtMs <= nowMs } ?? 0
        states[record.number - 1].removeFirst(visible)
        states[record.number - 1].append(record)
    }

    /// Numbers that can match, in their order, from `first` on.
    func numbers(ofEmployee employee: Int?, from first: Int) -> [Int] {
        guard let employee else { return Array(max(1, first)..<max(nextNumber, first, 1)) }
        return (byEmployee[employee] ?? []).filter { $0 >= first }
    }
}
