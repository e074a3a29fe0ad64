import Essentials
import Model
import Synchronization

/// The state of the SAP emulator: master data, records, switches, counters.
final class SAPSystem: SandboxSystem {
    /// A line of the journal.
    enum Line: Codable {
        case organisation(SAPOrganisation)
        case records([SAPRecord])

        /// `records` as JSON.
        static func json(of records: [SAPRecord]) -> JSONText {
            .object([("records", .object([("_0", .array(records.map(\.json)))]))])
        }
    }

    fileprivate struct State: ~Copyable {
        var master = SAPMasterData(SAPOrganisation())
        var records = SAPRecords()
        var dials = SandboxDials<SAPSwitches>()
        var journal: SandboxJournal<Line>?
    }

    private let state: Mutex<State>

    /// - Parameter journalPath: Where records survive a restart; nil keeps them in memory only.
    init(journalPath: String?) throws {
        var state = State()
        if let journalPath {
            var master = SAPMasterData(SAPOrganisation())
            var records = SAPRecords()
            state.journal = try SandboxJournal<Line>(path: journalPath) { line in
                switch line {
                case .organisation(let organisation): master = master.adding(organisation)
                case .records(let changed): for record in changed { records.put(record) }
                }
            }
            state.master = master
            state.records = records
        }
        self.state = Mutex(state)
    }

    // MARK: Master data, dials

    /// Adds master data; items with an existing number replace it.
    func load(_ organisation: SAPOrganisation) {
        state.withLock {
            $0.journal?.append(.organisation(organisation))
            $0.master = $0.master.adding(organisation)
        }
    }

    func withMaster<Result>(_ body: (SAPMasterData) -> Result) -> Result {
        state.withLock { body($0.master) }
    }

    func withDials<Value: Sendable>(_ use: (inout SandboxDials<SAPSwitches>) throws -> Value) rethrows -> Value {
        try state.withLock { try use(&$0.dials) }
    }

    var recordCount: Int { state.withLock { $0.records.all.count } }

    // MARK: Records

    /// Checks a request and, unless it is a trial, executes it.
    func apply(
        _ request: SAPEntryRequest, operation: String, isTrial: Bool = false
    ) throws(SAPTimeSheetRules.Refusal) -> SAPRecord {
        let outcome: Result<SAPRecord, SAPTimeSheetRules.Refusal> = state.withLock { state in
            do throws(SAPTimeSheetRules.Refusal) {
                let changes = try SAPTimeSheetRules.changes(
                    for: request, operation: operation, in: state.records, state.master, state.dials.switches)
                if !isTrial { state.write(changes) }
                return .success(changes[0])
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// Draws a refusal by a customer's own check, by `validationRate`.
    func drawValidation() -> Bool { withDials { $0.draw($0.switches.validationRate) } }

    /// Changes a record's status: 10 → 20 by its person; 20 → 30, 20 → 40, 30 → 20 and 40 → 20 by an approver. A
    /// replaced record is cancelled with the approval of its successor, and stays 50 if the successor is rejected.
    ///
    /// - Parameter reason: The reason of a rejection.
    /// - Returns: `false` if the record has no such transition.
    func approve(_ number: Int, _ status: SAPRecord.Status, reason: String?) -> Bool {
        state.withLock { state in
            guard var record = state.records[number] else { return false }
            switch (record.status, status) {
            case (.inProcess, .released), (.released, .approved), (.released, .rejected), (.approved, .released),
                (.rejected, .released):
                record.status = status
                record.rejectionReason = status == .rejected ? reason : nil
            default:
                return false
            }
            var changes = [record]
            if status == .approved, var old = record.predecessor.flatMap({ state.records[$0] }) {
                old.status = .cancelled
                changes.append(old)
            }
            state.write(changes)
            return true
        }
    }

    /// Stores records; a record with the number 0 is added.
    ///
    /// - Returns: Their numbers; none, and no effect, if one of them does not exist.
    func put(_ records: [SAPRecord]) -> [Int] {
        state.withLock { state in
            var next = state.records.nextNumber
            guard records.allSatisfy({ (0..<next).contains($0.number) }) else { return [] }
            var records = records
            for index in records.indices where records[index].number == 0 {
                records[index].number = next
                next += 1
            }
            state.write(records)
            return records.map(\.number)
        }
    }

    func record(_ number: Int) -> SAPRecord? { state.withLock { $0.records[number] } }

    /// At most `countMax` records with numbers above `number`.
    func records(after number: Int, countMax: Int) -> [SAPRecord] {
        state.withLock { Array($0.records.all.dropFirst(max(0, number)).prefix(countMax)) }
    }

    /// A page of the records that pass `filter`, ordered by number independent of the requested order.
    func records(_ filter: ODataFilter?, skip: Int, top: Int) -> [SAPRecord] {
        state.withLock { state in
            var found: [SAPRecord] = []
            var skipped = 0
            for number in state.records.candidates(for: filter) {
                guard found.count < top, let record = state.records[number] else { break }
                guard filter?.matches(record.value) ?? true else { continue }
                if skipped < skip { skipped += 1 } else { found.append(record) }
            }
            return found
        }
    }
}

extension SAPSystem.State {
    fileprivate mutating func write(_ changes: [SAPRecord]) {
        journal?.append(SAPSystem.Line.json(of: changes).bytes)
        for record in changes { records.put(record) }
    }
}

extension SAPRecords {
    /// The candidates for a filter: by person and day, or by days, if the filter has them; otherwise all.
    func candidates(for filter: ODataFilter?) -> AnySequence<Int> {
        guard let agreement = filter?.required("PersonWorkAgreementExternalID"),
            let company = filter?.required("CompanyCode")
        else {
            guard let from = filter?.required("TimeSheetDate", .ge).flatMap({ Day($0) }),
                let through = filter?.required("TimeSheetDate", .le).flatMap({ Day($0) })
            else { return AnySequence(1..<nextNumber) }
            return AnySequence(numbers(from: from, through: through))
        }
        let person = SAPMasterData.PersonKey(agreement: agreement, company: company)
        guard let day = filter?.required("TimeSheetDate").flatMap({ Day($0) }) else {
            return AnySequence(numbers(of: person))
        }
        return AnySequence(numbers(of: person, on: day))
    }
}

extension SAPRecord {
    /// The value of a field in a filter.
    func value(_ field: String) -> String? {
        switch field {
        case "PersonWorkAgreementExternalID": person
        case "CompanyCode": companyCode
        case "TimeSheetRecord": SAPRecord.text(ofNumber: number)
        case "TimeSheetDate": date.description
        case "TimeSheetStatus": String(status.rawValue)
        default: nil
        }
    }
}
