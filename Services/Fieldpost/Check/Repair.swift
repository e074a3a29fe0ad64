import AdminQueries
import Algorithms
import Audit
import FoundationEssentials
import Glibc
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Has the owning services reprocess or reconcile inconsistencies, and rewrites rows that no service owns.
struct Repair {
    private let ids: [String: EnvironmentID]
    private let administrator: Administrator
    private let end: ContinuousClock.Instant

    /// Maximum number of keys that one statement requeues.
    private static let pageCountMax = 500
    private static let reason = "fieldpost repair requested reprocessing"

    /// - Parameter waitMax: The maximum time to wait for services, in total, from now on.
    init(_ environments: [(id: EnvironmentID, name: String)], by administrator: Administrator, waitMax: Duration) {
        ids = Dictionary(uniqueKeysWithValues: environments.map { ($0.name, $0.id) })
        self.administrator = administrator
        end = .now + waitMax
    }

    /// Starts all repairs and waits for them. Submissions are last, because they depend on people's choices, which may
    /// be reconciled first.
    func run(_ rows: [Inconsistency], on connection: inout Connection) throws {
        let (others, submissions) = rows.partitioned { $0.part == .submissions }
        for rows in [others, submissions] {
            try start(rows, on: &connection)
            try wait(for: rows, on: &connection)
        }
    }

    /// Starts the repairs. Every write is guarded: rows that changed meanwhile are kept.
    private func start(_ rows: [Inconsistency], on connection: inout Connection) throws {
        for (name, rows) in Dictionary(grouping: rows, by: \.environment) {
            guard let environment = ids[name] else { continue }
            for (target, rows) in Dictionary(grouping: rows, by: \.part) {
                for page in rows.chunks(ofCount: Self.pageCountMax) {
                    try start(Array(page), target, in: environment, on: &connection)
                }
            }
        }
    }

    private func start(
        _ rows: [Inconsistency], _ target: CheckTarget, in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        let keys = Array(rows.map(\.key).uniqued())
        let detail = ["what": target.rawValue]
        let audit = administrator.audit(.objectsRepaired, keys, in: environment, detail: detail)
        switch target.repairMethod {
        case .reprocess(let service, let topic):
            let due = Cascade.due(
                group: service.name, topic: topic, in: environment,
                """
                SELECT i.key, i.id, \(Self.reason), -1
                FROM unnest(\(rows.map(\.key)), \(rows.map(\.id))) AS i(key, id)
                """)
            _ = try connection.run([due, audit])
        case .reconcile(let service):
            let reconciliation = Reconciliation(service, in: environment)
            _ = try connection.run(reconciliation.request(for: keys) + [audit])
        case .remove:
            try OrphanedMemberships.remove(rows, in: environment, on: &connection) { key, decision in
                administrator.audit(.objectsRepaired, key, in: environment, detail: detail, decision: decision)
            }
        case .rewrite:
            let subjects = rows.map { (subject: EventSubject($0.key), position: $0.position) }
            var directory = RealmDirectory()
            let realms = try directory.ids(
                of: Set(subjects.compactMap(\.subject?.realm)), in: environment, create: false, on: &connection)
            let names = Array(Set(subjects.compactMap(\.subject?.kind.rawValue)))
            let kinds = Dictionary(
                uniqueKeysWithValues: try connection.run(
                    "SELECT name, number FROM realm.kind WHERE name = ANY (\(names))"
                ).decode(String.self, Kind.self))
            let objects = subjects.compactMap { item -> (key: ObjectKey, position: Int64)? in
                guard let subject = item.subject, let realm = realms[subject.realm],
                    let kind = kinds[subject.kind.rawValue]
                else { return nil }
                return (ObjectKey(realm: realm, kind: kind, id: subject.id), item.position)
            }
            let writes =
                target == .images
                ? ImageReferences.write(objects.map(\.key), in: environment)
                : LostPointers.write(objects, in: environment)
            _ = try connection.run(writes + [audit])
        case .retry:
            let parked = try DeferredKeyStore.load(
                DeferredKeyStore.Selection(keys: rows.map(\.key), environment: environment.rawValue),
                countMax: Self.pageCountMax, on: &connection)
            _ = try DeferredKeyStore.retry(parked.map(DeferredKeyStore.Seen.init), by: administrator, on: &connection)
        case .manual: break
        }
    }

    /// Waits until the services have reprocessed their keys and finished the requested comparisons.
    private func wait(for rows: [Inconsistency], on connection: inout Connection) throws {
        while ContinuousClock.now < end, try isOpen(rows, on: &connection) { poll(nil, 0, 200) }
    }

    private func isOpen(_ rows: [Inconsistency], on connection: inout Connection) throws -> Bool {
        for (name, rows) in Dictionary(grouping: rows, by: \.environment) {
            guard let environment = ids[name] else { continue }
            for page in rows.chunks(ofCount: Self.pageCountMax) {
                let rows = try connection.run(
                    """
                    SELECT EXISTS (SELECT FROM pipeline.parked
                        WHERE environment_id = \(environment.rawValue) AND key = ANY (\(page.map(\.key)))
                            AND reason = \(Self.reason) AND attempts = 0 AND NOT is_dead)
                    """)
                if try rows[0].decode(Bool.self) { return true }
            }
            for (target, rows) in Dictionary(grouping: rows, by: \.part) {
                guard case .reconcile(let service) = target.repairMethod else { continue }
                let reconciliation = Reconciliation(service, in: environment)
                if try connection.run(reconciliation.isOpen(for: rows.map(\.key)))[0].decode(Bool.self) { return true }
            }
        }
        return false
    }

    /// Returns the reason why an inconsistency is not repaired.
    func reason(why row: Inconsistency, on connection: inout Connection) throws -> String {
        switch row.part.repairMethod {
        case .manual(let action): return action
        case .remove: return "\(row.fault): restore the missing object, or have a manager delete the membership"
        case .reconcile(let service):
            let reconciliation = ids[row.environment].map { Reconciliation(service, in: $0) }
            let isOpen = try reconciliation.map { try connection.run($0.isOpen(for: [row.key]))[0].decode(Bool.self) }
            return isOpen == false
                ? "\(service.name) has compared it without a change, or has no external system: \(row.fault)"
                : "\(service.name) has not compared it: check that it runs and that the external system responds"
        case .reprocess, .rewrite, .retry: break
        }
        let parked = try DeferredKeyStore.load(
            DeferredKeyStore.Selection(keys: [row.key], environment: ids[row.environment]?.rawValue), countMax: 1,
            on: &connection
        ).first
        guard let parked else {
            return "its service has reprocessed it without a change: \(row.fault)"
        }
        if parked.reason == Self.reason { return "\(parked.group) has not processed it: check that it runs" }
        return "\(parked.group) has deferred it: \(parked.reason)"
    }
}

/// Repairs `blob.reference`, whose rows are written by the triggers of `035-task-notes.sql` and `037-own-kinds.sql`.
enum ImageReferences {
    /// Returns statements that rewrite the references of these objects, under the lock of the environment's counter.
    static func write(_ keys: [ObjectKey], in environment: EnvironmentID) -> [Statement] {
        let named: Statement = """
            SELECT o.realm_id, o.kind, o.id, n.blob_id
            FROM unnest(\(keys.map(\.realm)), \(keys.map(\.kind)), \(keys.map(\.id))) AS i(realm_id, kind, id)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = i.realm_id
                    AND kind = i.kind AND id = i.id
                OFFSET 0
            ) o CROSS JOIN LATERAL (
                SELECT blob.named(o.kind, o.fields) AS blob_id WHERE o.kind < \(OwnKind.numbers.lowerBound)
                UNION ALL
                SELECT unnest(blob.named_at(w.image_paths, o.fields)) FROM realm.own_kind w
                WHERE w.environment_id = o.environment_id AND w.kind = o.kind
            ) n
            """
        return [
            "SELECT FROM realm.environment WHERE id = \(environment.rawValue) FOR UPDATE",
            """
            DELETE FROM blob.reference b
            USING unnest(\(keys.map(\.realm)), \(keys.map(\.kind)), \(keys.map(\.id))) AS i(realm_id, kind, id)
            WHERE b.environment_id = \(environment.rawValue) AND b.realm_id = i.realm_id AND b.kind = i.kind
                AND b.id = i.id AND NOT EXISTS (
                    SELECT FROM (\(named)) n WHERE n.realm_id = b.realm_id AND n.kind = b.kind AND n.id = b.id
                        AND n.blob_id = b.blob_id)
            """,
            """
            INSERT INTO blob.reference (environment_id, realm_id, kind, blob_id, id)
            SELECT \(environment.rawValue), n.realm_id, n.kind, n.blob_id, n.id FROM (\(named)) n
            WHERE n.blob_id IS NOT NULL ON CONFLICT DO NOTHING
            """,
        ]
    }
}
