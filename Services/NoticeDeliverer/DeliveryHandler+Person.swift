import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Processes the choice of one person: the next step of their deliveries.
extension DeliveryHandler {
    /// A call that has waited longer than this is reprocessed instead of sent. Including the call itself, this is
    /// shorter than the lease of a deferred key.
    private static let startMax = Duration.seconds(5)

    mutating func decidePerson(
        _ input: WorkItem<DeliveryCallResult>, _ realm: Int32, _ decision: Int, _ snapshot: DeliverySnapshot,
        _ batch: inout WriteBatch
    ) throws -> Disposition<DeliveryCall> {
        let key = ObjectKey(realm: realm, kind: .deliveryChoice, id: input.subject.id)
        let object = snapshot.objects[key]
        batch.expect(key, at: object?.position ?? 0, decision: decision)
        let choice = try object?.decoded(as: DeliveryChoice.self, by: decoder)
        let zone = choice.map { self.zone(of: $0) }
        let rows = snapshot.waiting[realm] ?? []
        let email = input.subject.realm.email ?? ""
        let active = snapshot.activeDevices[realm] ?? []
        var outcomes: [(shipment: Shipment, outcome: Outcome)] = []
        if case .result(let result) = input.origin { outcomes = result.outcomes }
        let plan = DeliveryRule.plan(
            PersonDeliveries(
                now: snapshot.now, person: "\(snapshot.environment) \(email)",
                targets: TargetRule.targets(choice, snapshot.settings, email: email) { active.contains($0.digest) },
                quietHours: choice?.quietHours.flatMap { QuietHours($0) }, zone: zone?.zone ?? { _ in 0 }, rows: rows,
                notices: chosen(rows, choice?.excludedCodes ?? [], realm, snapshot), outcomes: outcomes,
                ageMax: limits.ageMax, retryFirst: limits.retryFirst, jitter: .random(in: 0..<1)))
        if !plan.changes.isEmpty {
            batch.append(
                DeliveryStore.save(
                    plan.changes, of: realm, at: snapshot.now, in: snapshot.environment, decision: decision))
        }
        if let object, let choice {
            let choiceError = TargetRule.choiceError(choice, snapshot.settings, isTimeZoneValid: zone?.isValid ?? true)
            try updateChoice(plan, object, choice, active, choiceError, decision, &batch)
        }
        report(plan.changes, input.subject)
        return disposition(of: plan, snapshot.now)
    }

    private func disposition(of plan: DeliveryPlan, _ now: Timestamp) -> Disposition<DeliveryCall> {
        if !plan.shipments.isEmpty {
            return .call(DeliveryCall(shipments: plan.shipments), startBefore: .now + Self.startMax)
        }
        guard let until = plan.waitUntil else { return .finished }
        let wait = Duration.milliseconds(max(until.millisecondsSinceEpoch - now.millisecondsSinceEpoch, 0))
        let error = plan.changes.lazy.filter { $0.state == .waiting }.compactMap(\.row.lastError).first
        return .deferred(
            reason: error ?? "the next delivery is due at \(until)", after: min(wait, limits.waitMax), cause: .planned)
    }

    /// Returns the unread notices of rows, except excluded ones. A notice that does not decode counts as deleted.
    private func chosen(
        _ rows: [ShipmentRow], _ excluded: [Notice.Code], _ realm: Int32, _ snapshot: DeliverySnapshot
    ) -> [UUID: Notice] {
        var notices: [UUID: Notice] = [:]
        for id in Set(rows.map(\.notice)) {
            let object = snapshot.objects[ObjectKey(realm: realm, kind: .notice, id: id)]
            guard let notice = try? object?.decoded(as: Notice.self, by: decoder), !notice.isRead,
                !excluded.contains(notice.code)
            else { continue }
            notices[id] = notice
        }
        return notices
    }

    /// Updates the person's choice: removes expired subscriptions and revoked devices, and sets or clears the reported
    /// problem.
    private func updateChoice(
        _ plan: DeliveryPlan, _ object: RealmObject, _ choice: DeliveryChoice, _ active: Set<Bytea>,
        _ choiceError: String?, _ decision: Int, _ batch: inout WriteBatch
    ) throws {
        struct Change: Encodable {
            /// Only the changed lists.
            let pushes: [PushTarget]?
            let devices: [DeviceTarget]?
            let problem: String?

            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encodeIfPresent(pushes, forKey: .pushes)
                try container.encodeIfPresent(devices, forKey: .devices)
                // Also writes `nil`, as null, to remove an earlier problem.
                try container.encode(problem, forKey: .problem)
            }
            private enum Keys: CodingKey { case pushes, devices, problem }
        }
        let problem = DeliveryProblemRule.problem(
            stored: choice.problem, new: plan.problem, choiceError: choiceError, working: plan.workingChannels)
        let pushes = choice.pushes.filter { !plan.expiredTargets.contains(DeliveryTarget.push($0).id) }
        let devices = choice.devices.filter {
            active.contains($0.digest) && !plan.expiredTargets.contains(DeliveryTarget.device($0).id)
        }
        guard problem != choice.problem || pushes != choice.pushes || devices != choice.devices else { return }
        let change = Change(
            pushes: pushes == choice.pushes ? nil : pushes, devices: devices == choice.devices ? nil : devices,
            problem: problem)
        try batch.patch(object, CanonicalJSON(encoding: change), decision: decision)
    }

    /// Logs and counts failed deliveries, and counts successful ones.
    private func report(_ changes: [RowChange], _ subject: EventSubject) {
        for change in changes where change.state == .failed {
            logger.warning(
                "notice not delivered",
                metadata: [
                    "person": "\(subject.realm)", "notice": "\(change.row.notice.text)",
                    "channel": "\(change.row.channel.rawValue)", "reason": "\(change.row.lastError ?? "")",
                ])
            metrics.count(change.row.channel, .givenUp)
        }
        for change in changes where change.state == .sent { metrics.count(change.row.channel, .delivered) }
    }
}
