import Essentials
import FoundationEssentials
import Model

/// What waits for one person, and all that its next step is made from.
struct Lane {
    let now: Timestamp
    /// The person's e-mail address and environment, for ids.
    let person: String
    /// Where the person is told now.
    let targets: [Target]
    let quietHours: QuietHours?
    let zone: LocalTimeRule.Zone
    /// What waits.
    let rows: [WaitingRow]
    /// The notices of these rows that are there and not read.
    let notices: [UUID: Notice]
    /// What came of what was sent.
    let outcomes: [(shipment: Shipment, outcome: Outcome)]
    /// How long after it was due something is worth sending.
    let ageMax: Duration
    /// The wait after a first failure.
    let retryFirst: Duration
    /// From 0 up to 1.
    let chance: Double
}

/// What becomes of a row.
struct RowChange: Equatable, Sendable {
    enum State: String, Sendable {
        case waiting, sent, dropped, failed
    }

    var row: WaitingRow
    var state: State
}

/// A person's next step.
struct LanePlan {
    /// Rows that change, each once.
    var changes: [RowChange] = []
    /// What is sent now.
    var shipments: [Shipment] = []
    /// When there is something to do, if nothing is sent now; `nil`: nothing waits.
    var waitUntil: Timestamp?
    /// Browsers' subscriptions that are over.
    var goneEndpoints: Set<String> = []
    /// What its person is told: why something was given up.
    var problem: String?
    /// Ways that have worked.
    var workingWays: Set<Way> = []
}

/// What is sent to a person now, and what becomes of what was.
///
/// A target is sent one thing at a time, what was tried least first: one that is always refused does not hold up the
/// others. When a target fails, all that waits for it waits. What is tried in one e-mail stays in it, under its id.
enum LaneRule {
    static func plan(_ lane: Lane) -> LanePlan {
        var plan = LanePlan()
        var state = Rows(lane.rows)
        for (shipment, outcome) in lane.outcomes { hear(outcome, of: shipment, lane, &state, &plan) }
        drop(lane, &state, &plan)
        let waiting = state.waiting
        plan.waitUntil = waiting.map(\.nextAt).min()
        if !waiting.isEmpty, let hours = lane.quietHours,
            let end = LocalTimeRule.quietEnd(hours, at: lane.now, lane.zone)
        {
            plan.waitUntil = end
        } else {
            plan.shipments = shipments(of: waiting, lane)
            for shipment in plan.shipments where shipment.isDigest { mark(shipment, waiting, &state) }
        }
        plan.changes = state.changes
        return plan
    }

    /// The rows, and what became of them.
    private struct Rows {
        private struct Key: Hashable { let notice, target: UUID }
        private var rows: [Key: RowChange] = [:]
        private var changed: Set<Key> = []
        private let order: [Key]

        init(_ waiting: [WaitingRow]) {
            order = waiting.map { Key(notice: $0.notice, target: $0.target) }
            for row in waiting {
                rows[Key(notice: row.notice, target: row.target)] = RowChange(row: row, state: .waiting)
            }
        }

        var waiting: [WaitingRow] { order.compactMap { rows[$0] }.filter { $0.state == .waiting }.map(\.row) }
        var changes: [RowChange] { order.filter(changed.contains).compactMap { rows[$0] } }

        mutating func change(_ row: WaitingRow, to state: RowChange.State = .waiting) {
            let key = Key(notice: row.notice, target: row.target)
            rows[key] = RowChange(row: row, state: state)
            changed.insert(key)
        }
    }

    private static func hear(
        _ outcome: Outcome, of shipment: Shipment, _ lane: Lane, _ rows: inout Rows, _ plan: inout LanePlan
    ) {
        let (target, way) = (shipment.target.id, shipment.target.way)
        let sent = Set(shipment.items.map(\.id))
        let all = rows.waiting.filter { $0.target == target }
        let own = all.filter { sent.contains($0.notice) }
        switch outcome {
        case .delivered:
            plan.workingWays.insert(way)
            for row in own { rows.change(row, to: .sent) }
            // What only waited because the target failed goes on.
            for var row in all where !sent.contains(row.notice) && row.attempts == 0 && row.nextAt > row.dueAt {
                row.nextAt = row.dueAt
                rows.change(row)
            }
        case .retry(let reason, let asked):
            let wait = RetryRule.wait(
                after: failureCount(of: all) + 1, first: lane.retryFirst, asked: asked, chance: lane.chance)
            let next = lane.now.adding(wait)
            for var row in all {
                if sent.contains(row.notice) { (row.attempts, row.lastError) = (row.attempts + 1, reason) }
                row.nextAt = max(row.nextAt, next)
                rows.change(row)
            }
        case .refused(let reason):
            plan.problem = "\(way.rawValue): \(reason)"
            for row in own { rows.change(row.failed(reason), to: .failed) }
        case .gone(let reason):
            plan.problem = "\(way.rawValue): \(reason)"
            if case .push(let browser) = shipment.target { plan.goneEndpoints.insert(browser.endpoint) }
            for row in all { rows.change(row.failed(reason), to: .failed) }
        }
    }

    /// How often what waits for a target was sent in vain: a digest goes as one.
    private static func failureCount(of rows: [WaitingRow]) -> Int {
        let digests = Dictionary(grouping: rows.filter(\.isDigest), by: \.dueAt).values
        return rows.filter { !$0.isDigest }.reduce(0) { $0 + $1.attempts }
            + digests.reduce(0) { $0 + ($1.map(\.attempts).max() ?? 0) }
    }

    /// What was read or deleted, is not wanted any more, or is too old, is not sent.
    private static func drop(_ lane: Lane, _ rows: inout Rows, _ plan: inout LanePlan) {
        let wanted = Set(lane.targets.map(\.id))
        for row in rows.waiting {
            if lane.notices[row.notice] == nil || !wanted.contains(row.target) {
                rows.change(row, to: .dropped)
            } else if row.dueAt.adding(lane.ageMax) <= lane.now {
                let reason = "not delivered in time" + (row.lastError.map { ": " + $0 } ?? "")
                plan.problem = "\(row.way.rawValue): \(reason)"
                rows.change(row.failed(reason, isAttempt: false), to: .failed)
            }
        }
    }

    /// Its notices go together from now on, under one id.
    private static func mark(_ shipment: Shipment, _ waiting: [WaitingRow], _ rows: inout Rows) {
        let sent = Set(shipment.items.map(\.id))
        for var row in waiting where row.target == shipment.target.id && row.message == nil && sent.contains(row.notice)
        {
            row.message = shipment.id
            rows.change(row)
        }
    }

    /// The id of a digest: that under which it was tried, or one of its own.
    private static func id(ofDigestWith first: WaitingRow, to target: Target, _ lane: Lane) -> UUID {
        if let message = first.message { return message }
        let others = lane.rows.filter { $0.target == target.id && isTogether($0, first) }
        return Shipment.id(
            ofDigestAt: first.dueAt, with: others.map(\.notice), to: target.id, person: lane.person)
    }

    private static func isTogether(_ row: WaitingRow, _ first: WaitingRow) -> Bool {
        row.isDigest && row.dueAt == first.dueAt && row.message == first.message
    }

    private static func shipments(of waiting: [WaitingRow], _ lane: Lane) -> [Shipment] {
        let due = Dictionary(grouping: waiting.filter { $0.nextAt <= lane.now }, by: \.target)
        return lane.targets.compactMap { target in
            let first = due[target.id]?.min { left, right in
                (left.attempts, left.dueAt, left.notice.text) < (right.attempts, right.dueAt, right.notice.text)
            }
            guard let first else { return nil }
            let rows =
                first.isDigest
                ? waiting.filter { $0.target == target.id && isTogether($0, first) } : [first]
            let items = rows.compactMap { row in
                lane.notices[row.notice].map { Shipment.Item(id: row.notice, notice: $0) }
            }
            let id =
                first.isDigest
                ? Self.id(ofDigestWith: first, to: target, lane)
                : Shipment.id(of: first.notice, to: target.id, person: lane.person)
            return Shipment(
                id: id, target: target,
                items: items.sorted { ($0.notice.timestamp, $0.id.text) < ($1.notice.timestamp, $1.id.text) },
                isDigest: first.isDigest, expiresAt: first.dueAt.adding(lane.ageMax))
        }
    }
}

extension WaitingRow {
    fileprivate func failed(_ reason: String, isAttempt: Bool = true) -> WaitingRow {
        var row = self
        row.lastError = reason
        if isAttempt { row.attempts += 1 }
        return row
    }
}

extension Timestamp {
    func adding(_ duration: Duration) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: millisecondsSinceEpoch + duration.milliseconds)
    }
}
