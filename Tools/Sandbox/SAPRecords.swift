import Essentials
import Model

/// All records, found by number and by person.
struct SAPRecords {
    /// Record number − 1 is the index.
    private(set) var all: [SAPRecord] = []
    private var byPerson: [SAPMasterData.PersonKey: [Int]] = [:]

    var nextNumber: Int { all.count + 1 }

    subscript(number: Int) -> SAPRecord? { all.indices.contains(number - 1) ? all[number - 1] : nil }

    /// Adds a record, or replaces the one with its number. A record keeps its person.
    mutating func put(_ record: SAPRecord) {
        guard self[record.number] == nil else {
            all[record.number - 1] = record
            return
        }
        precondition(record.number == nextNumber, "record numbers have no gaps")
        all.append(record)
        byPerson[SAPMasterData.PersonKey(agreement: record.person, company: record.companyCode), default: []]
            .append(record.number)
    }

    /// The numbers of a person's records in their order.
    ///
    /// - Parameter day: `nil` for all days.
    func numbers(of person: SAPMasterData.PersonKey, on day: Day?) -> [Int] {
        (byPerson[person] ?? []).filter { day == nil || all[$0 - 1].date == day }
    }

    /// The numbers of all records on these days in their order.
    func numbers(from: Day, through: Day) -> [Int] {
        all.filter { $0.date >= from && $0.date <= through }.map(\.number)
    }
}

/// The effect of a POST on records, without a clock or random numbers.
enum SAPTimeSheetRules {
    /// A refusal: one message per problem.
    struct Refusal: Error {
        let messages: [String]
    }

    /// The records to write for a request: the one that is answered first, then the others that change.
    static func changes(
        for request: SAPEntryRequest, operation: String, in records: SAPRecords, _ master: SAPMasterData,
        _ switches: Switches<SAPSwitches>
    ) throws(Refusal) -> [SAPRecord] {
        switch operation {
        case "C":
            var record = try checked(request, master, switches)
            record.number = records.nextNumber
            return [record]
        case "U":
            let old = try existing(request, records, switches)
            return change(old, to: try checked(request, master, switches), records, switches)
        case "D":
            var old = try existing(request, records, switches)
            old.status = .cancelled
            return [old]
        default:
            throw Refusal(messages: ["Operation \(operation) is not known; use C, U or D"])
        }
    }

    private static func change(
        _ old: SAPRecord, to new: SAPRecord, _ records: SAPRecords, _ switches: Switches<SAPSwitches>
    ) -> [SAPRecord] {
        var (old, new) = (old, new)
        // What is not approved is overwritten; what is approved gets a successor.
        guard old.status == .approved else {
            new.number = old.number
            new.predecessor = old.predecessor
            return [new]
        }
        new.number = records.nextNumber
        new.predecessor = old.number
        old.status = new.status == .approved ? .cancelled : .changedAfterApproval
        return [new, old]
    }

    /// The record a change or deletion names.
    private static func existing(
        _ request: SAPEntryRequest, _ records: SAPRecords, _ switches: Switches<SAPSwitches>
    ) throws(Refusal) -> SAPRecord {
        let text = request.TimeSheetRecord ?? ""
        guard let record = Int(text).flatMap({ records[$0] }), record.person == request.PersonWorkAgreementExternalID,
            record.companyCode == request.CompanyCode
        else {
            throw Refusal(messages: ["Time sheet record \(text) does not exist"])
        }
        switch record.status {
        case .changedAfterApproval, .cancelled:
            throw Refusal(messages: ["Time sheet record \(text) is cancelled or has been replaced"])
        case .inProcess, .released, .approved, .rejected:
            break
        }
        if let problem = lock(on: record.date, switches) { throw Refusal(messages: [problem]) }
        return record
    }

    private static func lock(on day: Day, _ switches: Switches<SAPSwitches>) -> String? {
        guard let locked = switches.lockedThrough.flatMap({ Day($0) }), day <= locked else { return nil }
        return "The period is locked for time recording through \(locked)"
    }

    /// All that is wrong with the values, or the record they make; its number is not set yet.
    private static func checked(
        _ request: SAPEntryRequest, _ master: SAPMasterData, _ switches: Switches<SAPSwitches>
    ) throws(Refusal) -> SAPRecord {
        let key = SAPMasterData.PersonKey(
            agreement: request.PersonWorkAgreementExternalID ?? "", company: request.CompanyCode ?? "")
        var problems: [String] = []
        if let day = request.day {
            problems += personProblems(key, day, master)
            if let problem = lock(on: day, switches) { problems.append(problem) }
        } else {
            problems.append("Enter a valid date")
        }
        if let hundredths = request.hundredths {
            if hundredths <= 0 { problems.append("Enter a number of hours greater than 0") }
            if hundredths > 2400 { problems.append("More than 24 hours on one day cannot be recorded") }
        } else {
            problems.append("Enter a valid number of hours")
        }
        if request.field("HoursUnitOfMeasure") != "H" { problems.append("Enter hours in unit H") }
        problems += assignmentProblems(request, master)
        guard problems.isEmpty, let day = request.day, let hundredths = request.hundredths else {
            throw Refusal(messages: problems)
        }
        let isReleased = request.TimeSheetIsReleasedOnSave ?? false && !switches.savesInProcess
        return SAPRecord(
            number: 0, person: key.agreement, companyCode: key.company, date: day, hundredths: hundredths,
            note: switches.texts.stored(request.field("TimeSheetNote") ?? ""),
            wbsElement: request.field("WBSElement") ?? "",
            activityType: request.field("ActivityType") ?? "",
            assignments: request.assignments.isEmpty ? nil : request.assignments,
            status: isReleased ? (switches.approvalNeeded ? .released : .approved) : .inProcess, predecessor: nil,
            releasedOnSave: isReleased)
    }

    private static func personProblems(
        _ key: SAPMasterData.PersonKey, _ day: Day, _ master: SAPMasterData
    ) -> [String] {
        guard let person = master.people[key] else {
            return ["Personnel assignment \(key.agreement) does not exist in company code \(key.company)"]
        }
        let isEarly = person.validFrom.flatMap { Day($0) }.map { day < $0 } ?? false
        let isLate = person.validTo.flatMap { Day($0) }.map { day > $0 } ?? false
        let isRehired = person.rehiredOn.flatMap { Day($0) }.map { day >= $0 } ?? false
        if !isEarly && !isLate || isRehired { return [] }
        return ["Personnel assignment \(key.agreement) is not active on \(day)"]
    }

    /// Time is assigned by a WBS element, which must be there, an order, a cost centre or a task type.
    private static func assignmentProblems(_ request: SAPEntryRequest, _ master: SAPMasterData) -> [String] {
        let element = request.field("WBSElement") ?? ""
        if !element.isEmpty { return elementProblems(element, master) }
        return Self.objects.isDisjoint(with: request.assignments.keys) ? ["Enter a WBS element"] : []
    }

    private static let objects: Set = ["InternalOrder", "ReceiverCostCenter", "TimeSheetTaskType"]

    private static func elementProblems(_ element: String, _ master: SAPMasterData) -> [String] {
        guard let found = master.elements[element] else { return ["WBS element \(element) does not exist"] }
        let project = master.organisation.projects[found.project]
        if project.timeRecordingBlocked == true {
            return ["Project \(project.project) is blocked for time recording"]
        }
        if project.elements[found.element].timeRecordingBlocked == true {
            return ["WBS element \(element) is blocked for time recording"]
        }
        return []
    }
}
