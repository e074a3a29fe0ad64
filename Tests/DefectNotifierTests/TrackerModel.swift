import BackendConnections
import BackendProtocol
import Model

@testable import Compass
@testable import DefectNotifier

/// A tracker in memory: what its records are by now, and what happened to them. It answers pages as the server does,
/// from what was there when a query was run.
struct TrackerModel {
    /// One thing that happened.
    struct Event {
        /// The number of its row.
        let id: Int
        let record: String
        let action: String
        let user: String
        /// What the tracker's clock showed, in seconds.
        let seconds: Int
        /// When it can be read first, in seconds of UTC.
        let visibleAt: Int

        /// As the tracker writes it.
        var time: String { CompassTime(secondsOfItsClock: seconds).description }
    }

    /// Rows of a page.
    var pageRowsMax = 500
    /// How far the tracker's clock is ahead of UTC, in seconds.
    var offset = 3_600
    /// What every call ends with; `nil`: what it asks for.
    var failure: BackendError?
    private(set) var records: [String: TrackedDefect] = [:]
    private(set) var events: [Event] = []
    private var nextEventID = 0
    /// Whether its history has numbers.
    var hasHistoryIDs = true
    /// Who sees a record; everybody sees those that are not in it.
    var readers: [String: Set<String>] = [:]
    /// People's own logins that are not let in.
    var refusedLogins: Set<String> = []
    /// Rows that cannot be understood, beside the others.
    var nonsense: [[String: String]] = []
    /// Queries that were run, and pages that were read.
    private(set) var queryCount = 0
    private(set) var pageCount = 0
    private var results: [String: [ResultRow]] = [:]

    // MARK: What people do

    /// Somebody does something with a record, which is made when it is not there.
    ///
    /// - Parameters:
    ///   - owner: Whom it is assigned to with that; `nil`: as before.
    ///   - late: So many seconds later it can be read.
    mutating func act(
        _ action: String, on record: String, by user: String, at now: Int, owner: String? = nil,
        headline: String? = nil, state: String? = nil, late: Int = 0
    ) {
        var defect =
            records[record]
            ?? TrackedDefect(record: record, headline: "Defect \(record)", state: "Submitted", submitter: user)
        if let owner { defect.owner = owner.isEmpty ? nil : owner }
        if let headline { defect.headline = headline }
        if let state { defect.state = state }
        records[record] = defect
        nextEventID += 1
        events.append(
            Event(
                id: nextEventID, record: record, action: action, user: user, seconds: now + offset,
                visibleAt: now + late))
    }

    /// A record that was there before anybody read the tracker.
    mutating func add(_ defect: TrackedDefect) { records[defect.record] = defect }

    /// Takes a record away, with its history.
    mutating func delete(_ record: String) {
        records[record] = nil
        events.removeAll { $0.record == record }
    }

    // MARK: What is read

    mutating func read(_ reading: Reading, at now: Int) -> ReadAnswer {
        if let user = reading.own?.login.user, refusedLogins.contains(user) {
            return ReadAnswer(reading: reading, result: .failure(.unauthorized(reason: "no \(user)")))
        }
        if let failure { return ReadAnswer(reading: reading, result: .failure(failure)) }
        if reading.isRead { return ReadAnswer(reading: reading, result: .success(PageRead())) }
        let (results, number) = reading.open.map { ($0.results, $0.pageNumber + 1) } ?? (run(reading, now), 1)
        pageCount += 1
        let rows = (self.results[results.id] ?? []).dropFirst((number - 1) * pageRowsMax).prefix(pageRowsMax)
        var page = PageRead(Array(rows), of: reading.scope)
        if rows.count == pageRowsMax {
            page.open = Reading.Open(
                results: results, pageNumber: number, page: ResultPage(rows: Array(rows), isLast: false))
        } else {
            self.results[results.id] = nil
        }
        return ReadAnswer(reading: reading, result: .success(page))
    }

    /// Whether a reading asks for a record.
    private func isAskedFor(_ defect: TrackedDefect, _ reading: Reading) -> Bool {
        guard let me = reading.own?.login.user else { return true }
        guard sees(me, defect.record) else { return false }
        return switch reading.part {
        case .everybodys: true
        case .assigned: defect.owner == me
        case .reported: defect.submitter == me || reading.mirrored.contains(defect.record)
        }
    }

    /// Whether a login sees a record.
    func sees(_ login: String, _ record: String) -> Bool { readers[record]?.contains(login) ?? true }

    private mutating func run(_ reading: Reading, _ now: Int) -> ResultSet {
        queryCount += 1
        let columns = reading.scope == .changes ? TrackerColumns.ofHistory : TrackerColumns.ofDefect
        var rows: [[String: String]] = nonsense
        switch reading.scope {
        case .changes:
            // In no order that anybody may rely on.
            for event in events.reversed()
            where event.visibleAt <= now && event.seconds > reading.since.secondsOfItsClock {
                guard let defect = records[event.record], isAskedFor(defect, reading) else { continue }
                var row = Self.values(of: defect)
                row["history.action_name"] = event.action
                row["history.action_timestamp"] = event.time
                row["history.user_name"] = event.user
                row["history.dbid"] = hasHistoryIDs ? "\(event.id)" : ""
                rows.append(row)
            }
        case .comparison:
            rows += records.values.filter { isAskedFor($0, reading) }.sorted { $0.record < $1.record }.map(Self.values)
        }
        let id = "\(queryCount)"
        results[id] = rows.map { row in ResultRow(columns: columns, values: columns.map { row[$0] ?? "" }) }
        return ResultSet(id: id, query: id, columns: columns, pageRowsMax: pageRowsMax)
    }

    private static func values(of defect: TrackedDefect) -> [String: String] {
        [
            "id": defect.record, "Headline": defect.headline, "State": defect.state ?? "",
            "Severity": defect.severity ?? "", "Priority": defect.priority ?? "", "Owner": defect.owner ?? "",
            "Submitter": defect.submitter ?? "", "Submit_Date": defect.submitDate ?? "",
        ]
    }
}

/// Reads the whole history again whenever it looks, and tells owners of what it has not seen before: what the notifier
/// is to come to, however it gets there.
struct NaiveReader {
    struct Told: Hashable {
        /// The number of its row; `nil` in a tracker that has none.
        let id: Int?
        let record: String
        let action: String
        let time: String
        let user: String
        let email: String
        let code: String
        let text: String
    }

    private(set) var told: Set<Told> = []
    /// In a tracker without numbers nothing tells two rows apart that say the same of what, by whom and when.
    private var seen: Set<[String]> = []
    /// Who has looked before: everybody, once the account has.
    private var lookers: Set<String> = []

    /// - Parameters:
    ///   - people: E-mail addresses by login name.
    ///   - me: Whose own login looks, at what is theirs and they see; `nil`: the account looks for everybody.
    mutating func look(at tracker: TrackerModel, people: [String: String], now: Int, as me: String? = nil) {
        let hasLooked = me.map { lookers.contains($0) } ?? !lookers.isEmpty
        for event in tracker.events where event.visibleAt <= now {
            let defect = tracker.records[event.record]
            if let me, defect?.owner != me || !tracker.sees(me, event.record) { continue }
            let number = tracker.hasHistoryIDs ? event.id : nil
            let isNew = seen.insert(
                [event.record, event.action, event.user, event.time] + (number.map { ["\($0)"] } ?? [])
            ).inserted
            guard isNew, hasLooked, let defect, let owner = defect.owner, owner != event.user,
                let email = people[owner]
            else { continue }
            let isAssigned = event.action == "Submit" || event.action == "Assign"
            let end = isAssigned ? "has been assigned to you" : "has been modified"
            told.insert(
                Told(
                    id: number, record: event.record, action: event.action, time: event.time, user: event.user,
                    email: email,
                    code: isAssigned ? "defect-assigned" : "defect-modified",
                    text: "\(event.record) (\(defect.headline)) \(end)"))
        }
        lookers.formUnion(me.map { [$0] } ?? [String](people.keys))
    }
}
