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
            guard let record = records.shown(number, atMs: now), filter?.matches({ record.value($0) }) ?? true
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

extension EconomicRecord {
    /// The properties that can be filtered.
    static let filterable: Set<String> = [
        "number", "employeeNumber", "projectNumber", "activityNumber", "date", "numberOfHours", "text", "isApproved",
        "isReconciled", "lastUpdated",
    ]

    /// The value of a property in a filter.
    fileprivate func value(_ property: String) -> Filter.Value {
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
