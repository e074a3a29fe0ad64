import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// The next step of one person's deliveries.
extension DeliveryHandler {
    /// A call that has waited for longer is decided anew: together with the call itself that is shorter than the lease
    /// of a parked key.
    private static let startMax = Duration.seconds(5)

    mutating func decideLane(
        _ input: WorkItem<DispatchAnswer>, _ realm: Int32, _ decision: Int, _ work: DeliveryWork,
        _ batch: inout WriteBatch
    ) throws -> Disposition<Dispatch> {
        let key = ObjectKey(realm: realm, kind: .deliveryChoice, id: input.subject.id)
        let object = work.objects[key]
        batch.expect(key, at: object?.position ?? 0, decision: decision)
        let choice = try object?.decoded(as: DeliveryChoice.self, by: decoder)
        let zone = choice.map { self.zone(of: $0) }
        let rows = work.waiting[realm] ?? []
        let email = input.subject.realm.email ?? ""
        var outcomes: [(shipment: Shipment, outcome: Outcome)] = []
        if case .answer(let answer) = input.origin { outcomes = answer.outcomes }
        let plan = LaneRule.plan(
            Lane(
                now: work.now, person: "\(work.environment) \(email)",
                targets: TargetRule.targets(choice, work.settings, email: email),
                quietHours: choice?.quietHours.flatMap { QuietHours($0) }, zone: zone?.zone ?? { _ in 0 }, rows: rows,
                notices: try unread(rows, realm, work), outcomes: outcomes, ageMax: limits.ageMax,
                retryFirst: limits.retryFirst, chance: .random(in: 0..<1)))
        if !plan.changes.isEmpty {
            batch.also(
                DeliveryStore.save(
                    plan.changes, of: realm, at: work.now, in: work.environment, decision: decision))
        }
        if let object, let choice {
            let objection = TargetRule.objection(choice, work.settings, isZoneKnown: zone?.isKnown ?? true)
            try tell(plan, object, choice, objection, decision, &batch)
        }
        report(plan.changes, input.subject)
        return next(plan, work.now)
    }

    private func next(_ plan: LanePlan, _ now: Timestamp) -> Disposition<Dispatch> {
        if !plan.shipments.isEmpty {
            return .call(Dispatch(shipments: plan.shipments), startBefore: .now + Self.startMax)
        }
        guard let until = plan.waitUntil else { return .finished }
        let wait = Duration.milliseconds(max(until.millisecondsSinceEpoch - now.millisecondsSinceEpoch, 0))
        let error = plan.changes.lazy.filter { $0.state == .waiting }.compactMap(\.row.lastError).first
        return .park(
            reason: error ?? "the next delivery is due at \(until)", after: min(wait, limits.waitMax), cause: .planned)
    }

    /// The notices of rows that are there and not read. One that does not decode is none.
    private func unread(_ rows: [WaitingRow], _ realm: Int32, _ work: DeliveryWork) throws -> [UUID: Notice] {
        var notices: [UUID: Notice] = [:]
        for id in Set(rows.map(\.notice)) {
            let object = work.objects[ObjectKey(realm: realm, kind: .notice, id: id)]
            guard let notice = try? object?.decoded(as: Notice.self, by: decoder), !notice.isRead else { continue }
            notices[id] = notice
        }
        return notices
    }

    /// Removes browsers that are over, and tells the person what went wrong, or goes well again.
    private func tell(
        _ plan: LanePlan, _ object: RealmObject, _ choice: DeliveryChoice, _ objection: String?, _ decision: Int,
        _ batch: inout WriteBatch
    ) throws {
        struct Change: Encodable {
            let pushes: [PushTarget]
            let problem: String?

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encode(pushes, forKey: .pushes)
                // What is not there any more is said to be null: other fields stay as they are.
                try container.encode(problem, forKey: .problem)
            }
            private enum Keys: CodingKey { case pushes, problem }
        }
        let problem = ProblemRule.problem(
            stored: choice.problem, new: plan.problem, objection: objection, working: plan.workingWays)
        let pushes = choice.pushes.filter { !plan.goneEndpoints.contains($0.endpoint) }
        guard problem != choice.problem || pushes != choice.pushes else { return }
        try batch.patch(
            object, CanonicalJSON(encoding: Change(pushes: pushes, problem: problem)), decision: decision)
    }

    /// What was given up is told to operators too.
    private func report(_ changes: [RowChange], _ subject: EventSubject) {
        for change in changes where change.state == .failed {
            logger.warning(
                "a notice was not delivered",
                metadata: [
                    "person": "\(subject.realm)", "notice": "\(change.row.notice.text)",
                    "way": "\(change.row.way.rawValue)", "reason": "\(change.row.lastError ?? "")",
                ])
            metrics.count(change.row.way, .givenUp)
        }
        for change in changes where change.state == .sent { metrics.count(change.row.way, .delivered) }
    }
}
