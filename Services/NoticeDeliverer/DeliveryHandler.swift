import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import Tenants

/// Delivers notices to people's chosen targets.
///
/// A notice's event inserts a row of `delivery.shipment` for each target. All rows of a person share one key, that of
/// their `DeliveryChoice`. Each target gets one shipment at a time, so that an unresponsive target does not block the
/// others.
struct DeliveryHandler: Handler {
    static let schemaOldest: Int32 = 31

    /// The settings of deliveries in all environments.
    struct Limits: Sendable {
        /// Time after its due time until a notice is given up.
        var ageMax = Duration.seconds(2 * 86_400)
        /// Delay after a first failure.
        var retryFirst = Duration.seconds(15)
        /// Longest delay until a person's choice is processed again, because it may have changed.
        var waitMax = Duration.seconds(600)
    }

    let limits: Limits
    let logger: Logger
    let metrics: DeliveryMetrics
    let now: @Sendable () -> Timestamp
    let clients: DeliveryClientFactory
    var directory = RealmDirectory()
    var zones = TimeZoneCache()
    let decoder = JSONDecoder()
    /// The last settings of each environment, and the number of changes observed.
    private var settingsRevisions: [EnvironmentID: (settings: DeliverySettings?, revision: Int64)] = [:]

    init(
        _ clients: DeliveryClientFactory, limits: Limits = Limits(), metrics: DeliveryMetrics = DeliveryMetrics(),
        logger: Logger, now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) {
        self.clients = clients
        self.limits = limits
        self.metrics = metrics
        self.logger = logger
        self.now = now
    }

    mutating func decide(
        _ inputs: [WorkItem<DeliveryCallResult>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<DeliveryCall>] {
        let settings = try DeliverySettings.load(environment, on: &connection)
        updateRevision(of: environment, with: settings)
        var snapshot = DeliverySnapshot(environment: environment, settings: settings, now: now())
        try snapshot.load(inputs.map(\.subject), &directory, on: &connection)
        var dispositions = Array(repeating: Disposition<DeliveryCall>.finished, count: inputs.count)
        var started: [(subject: EventSubject, decision: Int)] = []
        var new: [DeliveryStore.Insertion] = []
        var dropped: [(key: ObjectKey, decision: Int)] = []
        for (decision, input) in inputs.enumerated() {
            guard let realm = snapshot.realms[input.subject.realm] else { continue }
            do {
                guard input.subject.kind == .notice else {
                    dispositions[decision] = try decidePerson(input, realm, decision, snapshot, &batch)
                    continue
                }
                let key = ObjectKey(realm: realm, kind: .notice, id: input.subject.id)
                batch.expect(key, at: snapshot.objects[key]?.position ?? 0, decision: decision)
                guard let start = try start(key, of: input.subject.realm, snapshot) else {
                    dropped.append((key, decision))
                    continue
                }
                batch.expect(start.choice.key, at: start.choice.position, decision: decision)
                new += start.rows.map { DeliveryStore.Insertion(realm: realm, row: $0, decision: decision) }
                started.append((start.subject, decision))
            } catch let error as StoredJSONError {
                dispositions[decision] = .deadLettered(reason: error.description)
            }
        }
        if !dropped.isEmpty { batch.append(DeliveryStore.drop(dropped, at: snapshot.now, in: environment)) }
        if !new.isEmpty { batch.append(DeliveryStore.insert(new, in: environment)) }
        if !started.isEmpty {
            batch.append(DeliveryStore.cascade(to: started, in: environment))
            batch.defersDueKeys = true
        }
        return dispositions
    }

    /// The new rows of a notice.
    private struct DeliveryStart {
        let choice: RealmObject
        /// The choice, which is processed next. It is processed without rows, too, to report why nothing can be sent.
        let subject: EventSubject
        let rows: [ShipmentRow]
    }

    /// - Returns: `nil` if the notice is read or deleted, or if it is not chosen. A notice older than `ageMax` gets no
    ///   new rows; its existing rows have their own time limit.
    private mutating func start(
        _ key: ObjectKey, of realm: RealmPath, _ snapshot: DeliverySnapshot
    ) throws -> DeliveryStart? {
        guard let object = snapshot.choices[key.realm],
            let notice = try snapshot.objects[key]?.decoded(as: Notice.self, by: decoder), !notice.isRead,
            let choice = try object.decoded(as: DeliveryChoice.self, by: decoder),
            !choice.excludedCodes.contains(notice.code)
        else { return nil }
        let zone = zone(of: choice).zone
        let isOld = notice.timestamp.adding(limits.ageMax) <= snapshot.now
        let active = snapshot.activeDevices[key.realm] ?? []
        let targets =
            isOld
            ? []
            : TargetRule.targets(choice, snapshot.settings, email: realm.email ?? "") { active.contains($0.digest) }
        let rows = targets.map { target in
            let digest = target.channel == .email ? choice.digestAt.flatMap { MinuteOfDay($0) } : nil
            let dueAt = digest.map { LocalTimeRule.next($0, after: snapshot.now, zone) } ?? snapshot.now
            return ShipmentRow(
                notice: key.id, target: target.id, channel: target.channel, isDigest: digest != nil, dueAt: dueAt,
                nextAt: dueAt)
        }
        return DeliveryStart(
            choice: object, subject: EventSubject(realm: realm, kind: .deliveryChoice, id: object.key.id), rows: rows)
    }

    /// Returns the time zone of a person; UTC if the name is unknown.
    mutating func zone(of choice: DeliveryChoice) -> (zone: LocalTimeRule.Zone, isValid: Bool) {
        guard let name = choice.timeZone else { return ({ _ in 0 }, true) }
        return zones.zone(name).map { ($0, true) } ?? ({ _ in 0 }, false)
    }

    // MARK: Calling

    private mutating func updateRevision(of environment: EnvironmentID, with settings: DeliverySettings?) {
        let before = settingsRevisions[environment]
        guard before == nil || before?.settings != settings else { return }
        settingsRevisions[environment] = (settings, (before?.revision ?? 0) + 1)
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { settingsRevisions[environment]?.revision ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (DeliveryCall) async -> DeliveryCallResult {
        guard let settings = try DeliverySettings.load(environment, on: &connection) else {
            throw CallerUnavailable(reason: "environment \(environment) has no delivery settings")
        }
        do throws(SecretBox.Failure) {
            let client = try clients.client(settings)
            return { call in await client.send(call) }
        } catch {
            throw CallerUnavailable(reason: "cannot decrypt a delivery secret: \(error)")
        }
    }

    func kind(of call: DeliveryCall) -> CallKind { .write }
}
