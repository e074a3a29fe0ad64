import Algorithms
import Environments
import Essentials
import FoundationEssentials
import Glibc
import Model
import Operations
import Postgres
import Realms
import Work

/// Has what differs be decided anew by the services that own it, and writes what nobody owns.
struct Repair {
    private let ids: [String: EnvironmentID]
    private let administrator: Administrator
    private let waitMax: Duration

    /// Keys that one statement parks.
    private static let pageCountMax = 500
    private static let reason = "fieldpost repair has it decided anew"

    init(
        _ environments: [(id: EnvironmentID, name: String)], by administrator: Administrator, waitMax: Duration
    ) {
        ids = Dictionary(uniqueKeysWithValues: environments.map { ($0.name, $0.id) })
        self.administrator = administrator
        self.waitMax = waitMax
    }

    /// Begins all repairs. What was changed meanwhile is left as it is: every write is guarded.
    func begin(_ rows: [Inconsistency], on connection: inout Connection) throws {
        for (name, rows) in Dictionary(grouping: rows, by: \.environment) {
            guard let environment = ids[name] else { continue }
            for (part, rows) in Dictionary(grouping: rows, by: \.part) {
                for page in rows.chunks(ofCount: Self.pageCountMax) {
                    try begin(Array(page), part, in: environment, on: &connection)
                }
            }
        }
    }

    private func begin(
        _ rows: [Inconsistency], _ part: CheckedPart, in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        let audit = administrator.audit(
            .objectsRepaired, rows.map(\.key), in: environment, detail: ["what": part.rawValue])
        switch part.repair {
        case .decide(let service, let topic):
            let due = Cascade.due(
                group: service.name, topic: topic, in: environment,
                """
                SELECT i.key, i.id, \(Self.reason), -1
                FROM unnest(\(rows.map(\.key)), \(rows.map(\.id))) AS i(key, id)
                """)
            _ = try connection.run([due, audit])
        case .database:
            let subjects = rows.map { (subject: EventSubject($0.key), position: $0.position) }
            var directory = RealmDirectory()
            let realms = try directory.ids(
                of: Set(subjects.compactMap(\.subject?.realm)), in: environment, create: false, on: &connection)
            let places = subjects.compactMap { item -> (key: ObjectKey, position: Int64)? in
                guard let subject = item.subject, let realm = realms[subject.realm] else { return nil }
                return (ObjectKey(realm: realm, kind: subject.kind, id: subject.id), item.position)
            }
            let writes =
                part == .images
                ? ImageReferences.write(places.map(\.key), in: environment)
                : LostPointers.write(places, in: environment)
            _ = try connection.run(writes + [audit])
        case .retry:
            let parked = try ParkedStore.load(
                ParkedStore.Selection(keys: rows.map(\.key), environment: environment.rawValue),
                countMax: Self.pageCountMax, on: &connection)
            _ = try ParkedStore.retry(parked.map(ParkedStore.Seen.init), by: administrator, on: &connection)
        case .none: break
        }
    }

    /// Waits until the services have decided what was parked for them.
    func wait(for rows: [Inconsistency], on connection: inout Connection) throws {
        let clock = ContinuousClock()
        let end = clock.now + waitMax
        while clock.now < end, try open(rows, on: &connection) { poll(nil, 0, 200) }
    }

    private func open(_ rows: [Inconsistency], on connection: inout Connection) throws -> Bool {
        for (name, rows) in Dictionary(grouping: rows, by: \.environment) {
            for page in rows.chunks(ofCount: Self.pageCountMax) {
                let found = try connection.run(
                    """
                    SELECT EXISTS (SELECT FROM pipeline.parked
                        WHERE environment_id = \(ids[name]?.rawValue) AND key = ANY (\(page.map(\.key)))
                            AND reason = \(Self.reason) AND attempts = 0 AND NOT is_dead)
                    """)
                if try found[0].decode(Bool.self) { return true }
            }
        }
        return false
    }

    /// Why something still differs.
    func reason(why row: Inconsistency, on connection: inout Connection) throws -> String {
        if case .none(let what) = row.part.repair { return what }
        let parked = try ParkedStore.load(
            ParkedStore.Selection(keys: [row.key], environment: ids[row.environment]?.rawValue), countMax: 1,
            on: &connection
        ).first
        guard let parked else {
            return "its service has decided it, and left it so: \(row.fault)"
        }
        if parked.reason == Self.reason { return "\(parked.group) has not come to it: is it running?" }
        return "\(parked.group) has it parked: \(parked.reason)"
    }
}

/// The repair of `blob.reference`, whose rows the triggers of `019-blobs.sql` keep.
enum ImageReferences {
    /// References of these objects as the objects are under the lock of the environment's counter.
    static func write(_ keys: [ObjectKey], in environment: EnvironmentID) -> [Statement] {
        let named: Statement = """
            SELECT o.realm_id, o.kind, o.id, blob.named(o.kind, o.fields) AS blob_id
            FROM unnest(\(keys.map(\.realm)), \(keys.map(\.kind)), \(keys.map(\.id))) AS i(realm_id, kind, id)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = i.realm_id
                    AND kind = i.kind AND id = i.id
                OFFSET 0
            ) o
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
