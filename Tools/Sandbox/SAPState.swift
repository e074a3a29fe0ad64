import Essentials
import Model

typealias SAPSystem = EmulatedSystem<SAPState>

/// The state of the SAP emulator: master data, records, and the CSRF tokens, which are lost with a restart.
struct SAPState: EmulatorState {
    /// A line of the journal.
    enum Line: Codable {
        case organisation(SAPOrganisation)
        case records([SAPRecord])

        /// `records` as JSON.
        static func json(of records: [SAPRecord]) -> JSON { ["records": ["_0": .array(records.map(\.json))]] }
    }

    private(set) var master = SAPMasterData(SAPOrganisation())
    private(set) var records = SAPRecords()
    var sessions = SAPSessions()
    var injector = FaultInjector<SAPSwitches>()
    var journal: Journal<Line>?

    var recordCount: Int { records.all.count }

    mutating func apply(_ line: Line) {
        switch line {
        case .organisation(let organisation): master = master.adding(organisation)
        case .records(let changed): for record in changed { records.put(record) }
        }
    }

    mutating func load(_ organisation: SAPOrganisation) { write(.organisation(organisation)) }

    private mutating func write(_ changes: [SAPRecord]) {
        journal?.append(Line.json(of: changes).bytes)
        apply(.records(changes))
    }

    /// Checks a request and, unless it is a trial, executes it.
    mutating func execute(
        _ request: SAPEntryRequest, operation: String, isTrial: Bool
    ) throws(SAPTimeSheetRules.Refusal) -> SAPRecord {
        let changes = try SAPTimeSheetRules.changes(
            for: request, operation: operation, in: records, master, switches)
        if !isTrial { write(changes) }
        return changes[0]
    }

    /// Changes a record's status: 10 → 20 by its person; 20 → 30, 20 → 40, 30 → 20 and 40 → 20 by an approver. A
    /// replaced record is cancelled with the approval of its successor, and stays 50 if the successor is rejected.
    ///
    /// - Parameter reason: The reason of a rejection.
    /// - Returns: `false` if the record has no such transition.
    mutating func approve(_ number: Int, _ status: SAPRecord.Status, reason: String?) -> Bool {
        guard var record = records[number] else { return false }
        switch (record.status, status) {
        case (.inProcess, .released), (.released, .approved), (.released, .rejected), (.approved, .released),
            (.rejected, .released):
            record.status = status
            record.rejectionReason = status == .rejected ? reason : nil
        default:
            return false
        }
        var changes = [record]
        if status == .approved, var old = record.predecessor.flatMap({ records[$0] }) {
            old.status = .cancelled
            changes.append(old)
        }
        write(changes)
        return true
    }

    /// Stores records; a record with the number 0 is added.
    ///
    /// - Returns: Their numbers.
    mutating func put(_ changes: [SAPRecord]) -> [Int] {
        var next = records.nextNumber
        var changes = changes
        for index in changes.indices where changes[index].number == 0 {
            changes[index].number = next
            next += 1
        }
        write(changes)
        return changes.map(\.number)
    }

    /// A page of the records that pass `filter`, ordered by number independent of the requested order.
    func page(_ filter: Filter?, skip: Int, top: Int) -> [SAPRecord] {
        var found: [SAPRecord] = []
        var skipped = 0
        for number in candidates(for: filter) {
            guard found.count < top, let record = records[number] else { break }
            guard filter?.matches({ record.value($0) }) ?? true else { continue }
            if skipped < skip { skipped += 1 } else { found.append(record) }
        }
        return found
    }

    /// The candidates for a filter: by person and day, or by days, if the filter has them; otherwise all.
    private func candidates(for filter: Filter?) -> AnySequence<Int> {
        func day(_ comparison: Filter.Comparison) -> Day? {
            filter?.required("TimeSheetDate", comparison).flatMap { Day($0) }
        }
        if let agreement = filter?.required("PersonWorkAgreementExternalID"),
            let company = filter?.required("CompanyCode")
        {
            let person = SAPMasterData.PersonKey(agreement: agreement, company: company)
            return AnySequence(records.numbers(of: person, on: day(.eq)))
        }
        guard let from = day(.ge), let through = day(.le) else { return AnySequence(1..<records.nextNumber) }
        return AnySequence(records.numbers(from: from, through: through))
    }
}

/// CSRF tokens, each bound to the session of its cookie. At `countMax` sessions, a new one ends all others: their
/// clients get 403 once, and fetch a token.
struct SAPSessions {
    static let cookie = "SAP_SESSIONID_S4H_100"
    private static let countMax = 10_000

    private var tokens: [String: String] = [:]

    mutating func start() -> (session: String, token: String) {
        let (session, token) = (Base64URL.random(byteCount: 16), Base64URL.random(byteCount: 16))
        if tokens.count >= Self.countMax { endAll() }
        tokens[session] = token
        return (session, token)
    }

    subscript(session: String) -> String? { tokens[session] }

    /// Ends all sessions, as a restart or a timeout does.
    mutating func endAll() { tokens = [:] }
}

extension SAPRecord {
    /// The value of a field in a filter.
    fileprivate func value(_ field: String) -> Filter.Value? {
        switch field {
        case "PersonWorkAgreementExternalID": .text(person)
        case "CompanyCode": .text(companyCode)
        case "TimeSheetRecord": .text(SAPRecord.text(ofNumber: number))
        case "TimeSheetDate": .text(date.description)
        case "TimeSheetStatus": .text(String(status.rawValue))
        default: nil
        }
    }
}
