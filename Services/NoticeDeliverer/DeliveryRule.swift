import Essentials
import FoundationEssentials
import Model

/// The state of one person's deliveries, on which the next step is based.
struct PersonDeliveries {
    let now: Timestamp
    /// The person's e-mail address and environment, for ids.
    let person: String
    /// The person's current targets.
    let targets: [DeliveryTarget]
    let quietHours: QuietHours?
    let zone: LocalTimeRule.Zone
    /// The waiting rows.
    let rows: [ShipmentRow]
    /// The unread notices of these rows that the person chose.
    let notices: [UUID: Notice]
    /// The outcomes of the last shipments.
    let outcomes: [(shipment: Shipment, outcome: Outcome)]
    /// Time after its due time until a notice is given up.
    let ageMax: Duration
    /// Delay after a first failure.
    let retryFirst: Duration
    /// Random jitter of the backoff, from 0 up to 1.
    let jitter: Double
}

/// The new state of a row.
struct RowChange: Equatable, Sendable {
    enum State: String, Sendable {
        case waiting, sent, dropped, failed
    }

    var row: ShipmentRow
    var state: State
}

/// A person's next step.
struct DeliveryPlan {
    /// Rows that change, each once.
    var changes: [RowChange] = []
    /// The shipments to send now.
    var shipments: [Shipment] = []
    /// Time of the next step if nothing is sent now; `nil`: nothing waits.
    var waitUntil: Timestamp?
    /// Ids of targets that no longer exist.
    var expiredTargets: Set<UUID> = []
    /// The problem to report to the person: why something was given up.
    var problem: String?
    /// Channels that have worked.
    var workingChannels: Set<Channel> = []
}

/// Decides what is sent to a person now, and applies the outcomes of the last shipments.
///
/// A target gets one shipment at a time, the one with the fewest attempts first, so that a rejected one does not block
/// the others. If a target fails, all its shipments are delayed. The notices of an e-mail stay together under its id
/// after the first attempt.
enum DeliveryRule {
    static func plan(_ deliveries: PersonDeliveries) -> DeliveryPlan {
        var plan = DeliveryPlan()
        var state = Rows(deliveries.rows)
        for (shipment, outcome) in deliveries.outcomes { apply(outcome, of: shipment, deliveries, &state, &plan) }
        drop(deliveries, &state, &plan)
        let waiting = state.waiting
        plan.waitUntil = waiting.map(\.nextAt).min()
        if !waiting.isEmpty, let hours = deliveries.quietHours,
            let end = LocalTimeRule.quietEnd(hours, at: deliveries.now, deliveries.zone)
        {
            plan.waitUntil = end
        } else {
            plan.shipments = shipments(of: waiting, deliveries)
            for shipment in plan.shipments where shipment.isDigest { assignDigest(shipment, waiting, &state) }
        }
        plan.changes = state.changes
        return plan
    }

    /// The rows with their changes.
    private struct Rows {
        private struct Key: Hashable { let notice, target: UUID }
        private var rows: [Key: RowChange] = [:]
        private var changed: Set<Key> = []
        private let order: [Key]

        init(_ waiting: [ShipmentRow]) {
            order = waiting.map { Key(notice: $0.notice, target: $0.target) }
            for row in waiting {
                rows[Key(notice: row.notice, target: row.target)] = RowChange(row: row, state: .waiting)
            }
        }

        var waiting: [ShipmentRow] { order.compactMap { rows[$0] }.filter { $0.state == .waiting }.map(\.row) }
        var changes: [RowChange] { order.filter(changed.contains).compactMap { rows[$0] } }

        mutating func change(_ row: ShipmentRow, to state: RowChange.State = .waiting) {
            let key = Key(notice: row.notice, target: row.target)
            rows[key] = RowChange(row: row, state: state)
            changed.insert(key)
        }
    }

    private static func apply(
        _ outcome: Outcome, of shipment: Shipment, _ deliveries: PersonDeliveries, _ rows: inout Rows,
        _ plan: inout DeliveryPlan
    ) {
        let (target, channel) = (shipment.target.id, shipment.target.channel)
        let sent = Set(shipment.items.map(\.id))
        let all = rows.waiting.filter { $0.target == target }
        let own = all.filter { sent.contains($0.notice) }
        switch outcome {
        case .delivered:
            plan.workingChannels.insert(channel)
            for row in own { rows.change(row, to: .sent) }
            // Rows that were delayed only by the target's failure become due again.
            for var row in all where !sent.contains(row.notice) && row.attempts == 0 && row.nextAt > row.dueAt {
                row.nextAt = row.dueAt
                rows.change(row)
            }
        case .retry(let reason, let retryAfter):
            let wait = RetryRule.wait(
                after: failureCount(of: all) + 1, first: deliveries.retryFirst, retryAfter: retryAfter,
                jitter: deliveries.jitter)
            let next = deliveries.now.adding(wait)
            for var row in all {
                if sent.contains(row.notice) { (row.attempts, row.lastError) = (row.attempts + 1, reason) }
                row.nextAt = max(row.nextAt, next)
                rows.change(row)
            }
        case .refused(let reason):
            plan.problem = "\(channel.rawValue): \(reason)"
            for row in own { rows.change(row.failed(reason), to: .failed) }
        case .expired(let reason):
            plan.problem = "\(channel.rawValue): \(reason)"
            plan.expiredTargets.insert(target)
            for row in all { rows.change(row.failed(reason), to: .failed) }
        }
    }

    /// Returns the number of failures of a target's waiting rows. A digest counts once.
    private static func failureCount(of rows: [ShipmentRow]) -> Int {
        let digests = Dictionary(grouping: rows.filter(\.isDigest), by: \.dueAt).values
        return rows.filter { !$0.isDigest }.reduce(0) { $0 + $1.attempts }
            + digests.reduce(0) { $0 + ($1.map(\.attempts).max() ?? 0) }
    }

    /// Drops rows of read, deleted and excluded notices and of unwanted targets, and fails those that are too old.
    private static func drop(_ deliveries: PersonDeliveries, _ rows: inout Rows, _ plan: inout DeliveryPlan) {
        let targetIDs = Set(deliveries.targets.map(\.id))
        for row in rows.waiting {
            if deliveries.notices[row.notice] == nil || !targetIDs.contains(row.target) {
                rows.change(row, to: .dropped)
            } else if row.dueAt.adding(deliveries.ageMax) <= deliveries.now {
                let reason = "not delivered in time" + (row.lastError.map { ": " + $0 } ?? "")
                plan.problem = "\(row.channel.rawValue): \(reason)"
                rows.change(row.failed(reason, isAttempt: false), to: .failed)
            }
        }
    }

    /// Assigns the digest's id to its notices.
    private static func assignDigest(_ shipment: Shipment, _ waiting: [ShipmentRow], _ rows: inout Rows) {
        let sent = Set(shipment.items.map(\.id))
        for var row in waiting where row.target == shipment.target.id && row.message == nil && sent.contains(row.notice)
        {
            row.message = shipment.id
            rows.change(row)
        }
    }

    /// Returns the id of a digest: that of its first attempt, or a new one.
    private static func id(ofDigestWith first: ShipmentRow, to target: DeliveryTarget, _ deliveries: PersonDeliveries)
        -> UUID
    {
        if let message = first.message { return message }
        let others = deliveries.rows.filter { $0.target == target.id && isSameDigest($0, first) }
        return Shipment.id(
            ofDigestAt: first.dueAt, with: others.map(\.notice), to: target.id, person: deliveries.person)
    }

    private static func isSameDigest(_ row: ShipmentRow, _ first: ShipmentRow) -> Bool {
        row.isDigest && row.dueAt == first.dueAt && row.message == first.message
    }

    private static func shipments(of waiting: [ShipmentRow], _ deliveries: PersonDeliveries) -> [Shipment] {
        let due = Dictionary(grouping: waiting.filter { $0.nextAt <= deliveries.now }, by: \.target)
        return deliveries.targets.compactMap { target in
            let first = due[target.id]?.min { left, right in
                (left.attempts, left.dueAt, left.notice.text) < (right.attempts, right.dueAt, right.notice.text)
            }
            guard let first else { return nil }
            let rows =
                first.isDigest
                ? waiting.filter { $0.target == target.id && isSameDigest($0, first) } : [first]
            let items = rows.compactMap { row in
                deliveries.notices[row.notice].map { Shipment.Item(id: row.notice, notice: $0) }
            }
            let id =
                first.isDigest
                ? Self.id(ofDigestWith: first, to: target, deliveries)
                : Shipment.id(of: first.notice, to: target.id, person: deliveries.person)
            return Shipment(
                id: id, target: target,
                items: items.sorted { ($0.notice.timestamp, $0.id.text) < ($1.notice.timestamp, $1.id.text) },
                isDigest: first.isDigest, expiresAt: first.dueAt.adding(deliveries.ageMax))
        }
    }
}

extension ShipmentRow {
    fileprivate func failed(_ reason: String, isAttempt: Bool = true) -> ShipmentRow {
        var row = self
        row.lastError = reason
        if isAttempt { row.attempts += 1 }
        return row
    }
}
