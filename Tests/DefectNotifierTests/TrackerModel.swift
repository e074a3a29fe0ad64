import BackendConnections
import BackendProtocol
import Model

@testable import Compass
@testable import DefectNotifier

/// A tracker in memory: its records and their history. Like the server, it serves pages from the state at the time of
/// the query.
struct TrackerModel {
    /// One action.
    struct Event {
        /// The row's number.
        let id: Int
        let record: String
        let action: String
        let user: String
        /// The time of the tracker's clock, in seconds.
        let seconds: Int
        /// The time from which the row is visible, in seconds of UTC.
        let visibleAt: Int

        /// The time as the tracker writes it.
        var time: String { CompassTime(clockSeconds: seconds).description }
    }

    /// Limit on rows of a page.
    var pageRowsMax = 500
    /// Lead of the tracker's clock over UTC, in seconds.
    var offset = 3_600
    /// The result of every call; `nil`: the requested page.
    var failure: BackendError?
    private(set) var records: [String: TrackedDefect] = [:]
    private(set) var events: [Event] = []
    private var nextEventID = 0
    /// Whether rows of the history have numbers.
    var hasHistoryIDs = true
    /// The logins that see a record; a record without an entry is visible to all.
    var readers: [String: Set<String>] = [:]
    /// People's own logins that are rejected.
    var refusedLogins: Set<String> = []
    /// Additional unreadable rows.
    var unreadableRows: [[String: String]] = []
    /// Number of queries run, and of pages read.
    private(set) var queryCount = 0
    private(set) var pageCount = 0
    private var results: [String: [ResultRow]] = [:]

    // MARK: Actions

    /// Performs an action on a record, which is created if it does not exist.
    ///
    /// - Parameters:
    ///   - owner: The new owner; `nil`: unchanged.
    ///   - late: Delay in seconds until the row is visible.
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

    /// Adds a record without history.
    mutating func add(_ defect: TrackedDefect) { records[defect.record] = defect }

    /// Removes a record with its history.
    mutating func delete(_ record: String) {
        records[record] = nil
        events.removeAll { $0.record == record }
    }

    // MARK: Reads

    mutating func read(_ request: PageRequest, at now: Int) -> PageResponse {
        if let user = request.own?.login.user, refusedLogins.contains(user) {
            return PageResponse(request: request, result: .failure(.unauthorized(reason: "no \(user)")))
        }
        if let failure { return PageResponse(request: request, result: .failure(failure)) }
        if request.allPagesRead { return PageResponse(request: request, result: .success(TrackerPage())) }
        let (results, number) = request.cursor.map { ($0.results, $0.pageNumber + 1) } ?? (run(request, now), 1)
        pageCount += 1
        let rows = (self.results[results.id] ?? []).dropFirst((number - 1) * pageRowsMax).prefix(pageRowsMax)
        var page = TrackerPage(Array(rows), of: request.scope)
        if rows.count == pageRowsMax {
            page.cursor = PageRequest.ResultCursor(
                results: results, pageNumber: number, page: ResultPage(rows: Array(rows), isLast: false))
        } else {
            self.results[results.id] = nil
        }
        return PageResponse(request: request, result: .success(page))
    }

    /// Whether a request selects a record.
    private func matches(_ defect: TrackedDefect, _ request: PageRequest) -> Bool {
        guard let login = request.own?.login.user else { return true }
        guard sees(login, defect.record) else { return false }
        return switch request.subset {
        case .all: true
        case .assigned: defect.owner == login
        case .reported: defect.submitter == login || request.mirroredRecords.contains(defect.record)
        }
    }

    /// Whether a login sees a record.
    func sees(_ login: String, _ record: String) -> Bool { readers[record]?.contains(login) ?? true }

    private mutating func run(_ request: PageRequest, _ now: Int) -> ResultSet {
        queryCount += 1
        let columns = request.scope == .changes ? TrackerColumns.ofHistory : TrackerColumns.ofDefect
        var rows: [[String: String]] = unreadableRows
        switch request.scope {
        case .changes:
            // In an arbitrary order.
            for event in events.reversed()
            where event.visibleAt <= now && event.seconds > request.since.clockSeconds {
                guard let defect = records[event.record], matches(defect, request) else { continue }
                var row = Self.values(of: defect)
                row["history.action_name"] = event.action
                row["history.action_timestamp"] = event.time
                row["history.user_name"] = event.user
                row["history.dbid"] = hasHistoryIDs ? "\(event.id)" : ""
                rows.append(row)
            }
        case .comparison:
            rows += records.values.filter { matches($0, request) }.sorted { $0.record < $1.record }.map(Self.values)
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

/// Reads the whole history at each call, and notifies owners of rows that it has not processed before: the expected
/// result of the notifier.
struct ReferenceReader {
    struct ExpectedNotice: Hashable {
        /// The row's number; `nil` in a tracker without numbers.
        let id: Int?
        let record: String
        let action: String
        let time: String
        let user: String
        let email: String
        let code: String
        let text: String
    }

    private(set) var notices: Set<ExpectedNotice> = []
    /// Processed rows. Without numbers, rows with the same record, action, user and second are equal.
    private var processed: Set<[String]> = []
    /// Logins that have read before: all of them after a read with the account.
    private var initializedLogins: Set<String> = []

    /// - Parameters:
    ///   - people: E-mail addresses by login name.
    ///   - login: The own login that reads what it owns and sees; `nil`: the account reads for all.
    mutating func read(_ tracker: TrackerModel, people: [String: String], now: Int, as login: String? = nil) {
        let isInitialized = login.map { initializedLogins.contains($0) } ?? !initializedLogins.isEmpty
        for event in tracker.events where event.visibleAt <= now {
            let defect = tracker.records[event.record]
            if let login, defect?.owner != login || !tracker.sees(login, event.record) { continue }
            let number = tracker.hasHistoryIDs ? event.id : nil
            let isNew = processed.insert(
                [event.record, event.action, event.user, event.time] + (number.map { ["\($0)"] } ?? [])
            ).inserted
            guard isNew, isInitialized, let defect, let owner = defect.owner, owner != event.user,
                let email = people[owner]
            else { continue }
            let isAssigned = event.action == "Submit" || event.action == "Assign"
            let end = isAssigned ? "has been assigned to you" : "has been modified"
            notices.insert(
                ExpectedNotice(
                    id: number, record: event.record, action: event.action, time: event.time, user: event.user,
                    email: email,
                    code: isAssigned ? "defect-assigned" : "defect-modified",
                    text: "\(event.record) (\(defect.headline)) \(end)"))
        }
        initializedLogins.formUnion(login.map { [$0] } ?? [String](people.keys))
    }
}
