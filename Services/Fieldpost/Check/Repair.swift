import AdminQueries
import Algorithms
import Audit
import Essentials
import FoundationEssentials
import Glibc
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Has what differs be decided anew by the services that own it, and writes what nobody owns.
struct Repair {
    private let ids: [String: EnvironmentID]
    private let administrator: Administrator
    private let end: ContinuousClock.Instant

    /// Keys that one statement parks.
    private static let pageCountMax = 500
    private static let reason = "fieldpost repair has it decided anew"

    /// - Parameter waitMax: How long it waits for services, all in all, from now on.
    init(
        _ environments: [(id: EnvironmentID, name: String)], by administrator: Administrator, waitMax: Duration
    ) {
        ids = Dictionary(uniqueKeysWithValues: environments.map { ($0.name, $0.id) })
        self.administrator = administrator
        end = .now + waitMax
    }

    /// Carries out all repairs, and waits for them. Submissions come last: they are decided by what people may report
    /// on, which may be compared anew.
    func mend(_ rows: [Inconsistency], on connection: inout Connection) throws {
        let (others, submissions) = rows.partitioned { $0.part == .submissions }
        for rows in [others, submissions] {
            try begin(rows, on: &connection)
            try wait(for: rows, on: &connection)
        }
    }

    /// What was changed meanwhile is left as it is: every write is guarded.
    private func begin(_ rows: [Inconsistency], on connection: inout Connection) throws {
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
        let keys = Array(rows.map(\.key).uniqued())
        let detail = ["what": part.rawValue]
        let audit = administrator.audit(.objectsRepaired, keys, in: environment, detail: detail)
        switch part.repair {
        case .decide(let service, let topic):
            let due = Cascade.due(
                group: service.name, topic: topic, in: environment,
                """
                SELECT i.key, i.id, \(Self.reason), -1
                FROM unnest(\(rows.map(\.key)), \(rows.map(\.id))) AS i(key, id)
                """)
            _ = try connection.run([due, audit])
        case .compare(let service):
            let comparison = Comparison(service, in: environment)
            _ = try connection.run(comparison.ask(for: keys) + [audit])
        case .remove:
            try Leftovers.remove(rows, in: environment, on: &connection) { key, decision in
                administrator.audit(.objectsRepaired, key, in: environment, detail: detail, decision: decision)
            }
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

    /// Waits until the services have decided what was parked for them, and have compared what they were asked to.
    private func wait(for rows: [Inconsistency], on connection: inout Connection) throws {
        while ContinuousClock.now < end, try isOpen(rows, on: &connection) { poll(nil, 0, 200) }
    }

    private func isOpen(_ rows: [Inconsistency], on connection: inout Connection) throws -> Bool {
        for (name, rows) in Dictionary(grouping: rows, by: \.environment) {
            guard let environment = ids[name] else { continue }
            for page in rows.chunks(ofCount: Self.pageCountMax) {
                let found = try connection.run(
                    """
                    SELECT EXISTS (SELECT FROM pipeline.parked
                        WHERE environment_id = \(environment.rawValue) AND key = ANY (\(page.map(\.key)))
                            AND reason = \(Self.reason) AND attempts = 0 AND NOT is_dead)
                    """)
                if try found[0].decode(Bool.self) { return true }
            }
            for (part, rows) in Dictionary(grouping: rows, by: \.part) {
                guard case .compare(let service) = part.repair else { continue }
                let comparison = Comparison(service, in: environment)
                if try connection.run(comparison.isOpen(for: rows.map(\.key)))[0].decode(Bool.self) { return true }
            }
        }
        return false
    }

    /// Why something still differs.
    func reason(why row: Inconsistency, on connection: inout Connection) throws -> String {
        switch row.part.repair {
        case .none(let what): return what
        case .remove: return "\(row.fault): put back what it belongs to, or have a manager remove it"
        case .compare(let service):
            let comparison = ids[row.environment].map { Comparison(service, in: $0) }
            let isOpen = try comparison.map { try connection.run($0.isOpen(for: [row.key]))[0].decode(Bool.self) }
            return isOpen == false
                ? "\(service.name) has left it so, or nothing to compare it with: \(row.fault)"
                : "\(service.name) has not compared it: is it running, and does the other system answer?"
        case .decide, .database, .retry: break
        }
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
