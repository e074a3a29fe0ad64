import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import Tenants

/// Carries notices outside.
///
/// A notice's event begins its ways to the targets that its person chose: rows of `delivery.shipment`. What waits for a
/// person is one key, that of their choice: one thing is sent to each of their targets at a time, and who does not
/// answer holds up nobody else.
struct DeliveryHandler: Handler {
    static let schemaOldest: Int32 = 26

    /// What of a delivery is configured for all environments.
    struct Limits: Sendable {
        /// How long after it was due something is worth sending.
        var ageMax = Duration.seconds(2 * 86_400)
        /// The wait after a first failure.
        var retryFirst = Duration.seconds(15)
        /// A person's choice is looked at again after so long, whatever it says: it may have changed.
        var waitMax = Duration.seconds(600)
    }

    let limits: Limits
    let logger: Logger
    let metrics: DeliveryMetrics
    let now: @Sendable () -> Timestamp
    let couriers: Couriers
    var directory = RealmDirectory()
    var zones = Zones()
    let decoder = JSONDecoder()
    /// What each environment offers, and how often that was something else before.
    private var known: [EnvironmentID: (settings: DeliverySettings?, revision: Int64)] = [:]

    init(
        _ couriers: Couriers, limits: Limits = Limits(), metrics: DeliveryMetrics = DeliveryMetrics(), logger: Logger,
        now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) {
        self.couriers = couriers
        self.limits = limits
        self.metrics = metrics
        self.logger = logger
        self.now = now
    }

    mutating func decide(
        _ inputs: [WorkItem<DispatchAnswer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Dispatch>] {
        let settings = try DeliverySettings.load(environment, on: &connection)
        note(settings, of: environment)
        var work = DeliveryWork(environment: environment, settings: settings, now: now())
        try work.load(inputs.map(\.subject), &directory, on: &connection)
        var dispositions = Array(repeating: Disposition<Dispatch>.finished, count: inputs.count)
        var begun: [(subject: EventSubject, decision: Int)] = []
        var new: [DeliveryStore.New] = []
        var dropped: [(key: ObjectKey, decision: Int)] = []
        for (decision, input) in inputs.enumerated() {
            guard let realm = work.realms[input.subject.realm] else { continue }
            do {
                guard input.subject.kind == .notice else {
                    dispositions[decision] = try decideLane(input, realm, decision, work, &batch)
                    continue
                }
                let key = ObjectKey(realm: realm, kind: .notice, id: input.subject.id)
                batch.expect(key, at: work.objects[key]?.position ?? 0, decision: decision)
                guard let beginning = try begin(key, of: input.subject.realm, work) else {
                    dropped.append((key, decision))
                    continue
                }
                batch.expect(beginning.choice.key, at: beginning.choice.position, decision: decision)
                new += beginning.rows.map { DeliveryStore.New(realm: realm, row: $0, decision: decision) }
                begun.append((beginning.subject, decision))
            } catch let error as Undecodable {
                dispositions[decision] = .dead(reason: error.description)
            }
        }
        if !dropped.isEmpty { batch.also(DeliveryStore.drop(dropped, at: work.now, in: environment)) }
        if !new.isEmpty { batch.also(DeliveryStore.begin(new, in: environment)) }
        if !begun.isEmpty {
            batch.also(DeliveryStore.cascade(to: begun, in: environment))
            batch.parksDueKeys = true
        }
        return dispositions
    }

    /// The ways that a notice begins.
    private struct Beginning {
        let choice: RealmObject
        /// The choice, which is decided next: also when nothing can be sent, so that its person is told.
        let subject: EventSubject
        let rows: [WaitingRow]
    }

    /// - Returns: `nil` when the notice is read or deleted, or nothing is chosen. An old one begins no new way; what
    ///   waits of it has a time of its own.
    private mutating func begin(
        _ key: ObjectKey, of realm: RealmPath, _ work: DeliveryWork
    ) throws -> Beginning? {
        guard let object = work.choices[key.realm],
            let notice = try work.objects[key]?.decoded(as: Notice.self, by: decoder), !notice.isRead,
            let choice = try object.decoded(as: DeliveryChoice.self, by: decoder)
        else { return nil }
        let zone = zone(of: choice).zone
        let isOld = notice.timestamp.adding(limits.ageMax) <= work.now
        let targets = isOld ? [] : TargetRule.targets(choice, work.settings, email: realm.email ?? "")
        let rows = targets.map { target in
            let digest = target.way == .email ? choice.digestAt.flatMap { MinuteOfDay($0) } : nil
            let dueAt = digest.map { LocalTimeRule.next($0, after: work.now, zone) } ?? work.now
            return WaitingRow(
                notice: key.id, target: target.id, way: target.way, isDigest: digest != nil, dueAt: dueAt,
                nextAt: dueAt)
        }
        return Beginning(
            choice: object, subject: EventSubject(realm: realm, kind: .deliveryChoice, id: object.key.id), rows: rows)
    }

    /// The zone of a person; UTC where there is none of that name.
    mutating func zone(of choice: DeliveryChoice) -> (zone: LocalTimeRule.Zone, isKnown: Bool) {
        guard let name = choice.timeZone else { return ({ _ in 0 }, true) }
        return zones.zone(name).map { ($0, true) } ?? ({ _ in 0 }, false)
    }

    // MARK: Calling

    private mutating func note(_ settings: DeliverySettings?, of environment: EnvironmentID) {
        let before = known[environment]
        guard before == nil || before?.settings != settings else { return }
        known[environment] = (settings, (before?.revision ?? 0) + 1)
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { known[environment]?.revision ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Dispatch) async -> DispatchAnswer {
        guard let settings = try DeliverySettings.load(environment, on: &connection) else {
            throw CallerUnavailable(reason: "environment \(environment) has no deliveries")
        }
        do throws(SecretBox.Failure) {
            let courier = try couriers.courier(settings)
            return { dispatch in await courier.send(dispatch) }
        } catch {
            throw CallerUnavailable(reason: "a secret of the deliveries: \(error)")
        }
    }

    func kind(of call: Dispatch) -> CallKind { .write }
}
