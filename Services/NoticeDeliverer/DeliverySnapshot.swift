import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// The state that a batch of decisions is based on, loaded in a few round trips for all inputs.
struct DeliverySnapshot {
    let environment: EnvironmentID
    let settings: DeliverySettings?
    let now: Timestamp
    private(set) var realms: [RealmPath: Int32] = [:]
    /// Notices by their keys, with tombstones, and the choices of the inputs.
    private(set) var objects: [ObjectKey: RealmObject] = [:]
    /// The choice of each realm's person.
    private(set) var choices: [Int32: RealmObject] = [:]
    /// The digests of each realm's devices whose credential is not revoked.
    private(set) var activeDevices: [Int32: Set<Bytea>] = [:]
    /// The waiting rows of the people whose choices are inputs.
    private(set) var waiting: [Int32: [ShipmentRow]] = [:]

    init(environment: EnvironmentID, settings: DeliverySettings?, now: Timestamp) {
        self.environment = environment
        self.settings = settings
        self.now = now
    }

    mutating func load(
        _ subjects: [EventSubject], _ directory: inout RealmDirectory, on connection: inout Connection
    ) throws {
        realms = try directory.ids(
            of: Set(subjects.map(\.realm)), in: environment, create: false, on: &connection)
        let keys = subjects.compactMap { subject in
            realms[subject.realm].map { ObjectKey(realm: $0, kind: subject.kind, id: subject.id) }
        }
        let choiceRealms = keys.filter { $0.kind == .deliveryChoice }.map(\.realm)
        let results = try connection.run([
            RealmObject.load(keys, in: environment), DeliveryStore.choices(in: keys.map(\.realm), of: environment),
            DeliveryStore.waiting(in: choiceRealms, of: environment),
            DeliveryStore.activeDevices(in: keys.map(\.realm), of: environment),
        ])
        objects = try RealmObject.byKey(results[0])
        for object in try RealmObject.byKey(results[1]).values { choices[object.key.realm] = object }
        waiting = try DeliveryStore.read(results[2])
        for (realm, digest) in try results[3].decode(Int32.self, Bytea.self) {
            activeDevices[realm, default: []].insert(digest)
        }
        let notices = Set(
            waiting.flatMap { realm, rows in
                rows.map { ObjectKey(realm: realm, kind: .notice, id: $0.notice) }
            })
        guard !notices.isEmpty else { return }
        let loaded = try RealmObject.byKey(connection.run(RealmObject.load(notices, in: environment)))
        objects.merge(loaded) { $1 }
    }
}
