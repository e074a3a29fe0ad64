import Algorithms
import CommandLineSupport
import Essentials
import FoundationEssentials
import Glibc
import Model
import Postgres

/// Finds inconsistencies in two passes. Changes that are in flight during the first pass are resolved, or have another
/// position, in the second, and are not reported.
struct ConsistencyCheck {
    /// The pending work of an environment.
    struct Backlog: Encodable {
        let environment: String
        /// Number of positions that are not published yet.
        let unpublished: Int64
        /// Number of deferred keys that will be retried.
        let parked: Int64
        /// Number of dead-lettered keys.
        let dead: Int64

        private enum CodingKeys: String, CodingKey {
            case environment, unpublished
            case parked = "deferred"
            case dead = "deadLettered"
        }

        var isQuiescent: Bool { unpublished == 0 && parked == 0 }
    }

    struct Outcome: Encodable {
        let inconsistencies: [Inconsistency]
        let rests: [Backlog]
        /// Whether the limit was reached, so that there may be more inconsistencies.
        let isCut: Bool

        private enum CodingKeys: String, CodingKey {
            case inconsistencies
            case rests = "backlogs"
            case isCut = "isTruncated"
        }
    }

    let environments: [(id: EnvironmentID, name: String)]
    let targets: [CheckTarget]
    /// Maximum number of inconsistencies per target and environment.
    let countMax: Int
    /// Maximum time to wait between the passes for work in flight.
    let settleMax: Duration
    /// The cluster whose committed offsets are read; `nil`: none.
    var transport: InFlightWork.Transport?
    /// Called after each slice with the number of finished slices and their total.
    var progress: (Int, Int) -> Void = { _, _ in }

    /// Limits for the check's session. A slice is meant to take less than a second, but ids may be clustered.
    static var limits: Limits {
        var limits = Limits()
        limits.statementMax = .seconds(600)
        return limits
    }

    func run(on connection: inout Connection) throws -> Outcome {
        let sliceCount = CheckSlice.count(objects: try Self.objectCount(on: &connection))
        var (inconsistencies, isCut) = ([Inconsistency](), false)
        for (number, environment) in environments.enumerated() {
            var slices: [CheckTarget: [Int]] = [:]
            for index in 0..<sliceCount {
                let slice = CheckSlice(environment: environment.id, index: index, count: sliceCount, countMax: countMax)
                for target in targets where count(of: target, environment.name, in: inconsistencies) < countMax {
                    let rows = try check(target, slice, environment.name, on: &connection)
                    if !rows.isEmpty { slices[target, default: []].append(index) }
                    inconsistencies += rows
                    isCut = isCut || rows.count >= countMax
                }
                progress(number * sliceCount + index + 1, environments.count * sliceCount)
            }
            if slices.isEmpty { continue }
            let remaining = try settle(environment.id, slices.keys, on: &connection)
            // Before the second pass: a key that is processed meanwhile is either consistent or marked as pending.
            let deferred = try deferredKeys(among: inconsistencies, in: environment, on: &connection)
            var confirmed: Set<Inconsistency> = []
            for (target, indexes) in slices {
                for index in indexes {
                    let slice = CheckSlice(
                        environment: environment.id, index: index, count: sliceCount, countMax: countMax * 2)
                    confirmed.formUnion(try check(target, slice, environment.name, on: &connection))
                }
            }
            inconsistencies.removeAll { $0.environment == environment.name && !confirmed.contains($0) }
            for index in inconsistencies.indices where inconsistencies[index].environment == environment.name {
                let names = inconsistencies[index].part.workers.map(\.name)
                inconsistencies[index].pending =
                    deferred[inconsistencies[index].key]?.first { names.contains($0.group) }.map {
                        "\($0.group) has deferred it: \($0.reason)"
                    } ?? names.lazy.compactMap { remaining[$0] }.first
            }
        }
        // The order of rows depends on PostgreSQL's plan, which may differ between two checks.
        inconsistencies.sort { $0.order < $1.order }
        return Outcome(inconsistencies: inconsistencies, rests: try backlogs(on: &connection), isCut: isCut)
    }

    private func count(of target: CheckTarget, _ environment: String, in inconsistencies: [Inconsistency]) -> Int {
        inconsistencies.count { $0.part == target && $0.environment == environment }
    }

    private func check(
        _ target: CheckTarget, _ slice: CheckSlice, _ name: String, on connection: inout Connection
    ) throws -> [Inconsistency] {
        try connection.run(slice.statement(target)).decode(String.self, String.self, UUID.self, Int64.self)
            .map { Inconsistency(environment: name, part: target, key: $0, fault: $1, id: $2, position: $3) }
    }

    /// The approximate number of objects, by the last ANALYZE; 0 if there was none.
    private static func objectCount(on connection: inout Connection) throws -> Int {
        let rows = try connection.run("SELECT reltuples::bigint FROM pg_class WHERE oid = 'store.object'::regclass")
        return Int(max(0, try rows[0].decode(Int64.self)))
    }

    // MARK: Work in flight

    /// Waits for work in flight that may resolve inconsistencies: at most `settleMax` and one response of the brokers.
    /// Without offsets from Kafka it waits a second longer, for messages that workers are processing.
    ///
    /// - Returns: The work that remains, by group.
    private func settle(
        _ environment: EnvironmentID, _ targets: some Collection<CheckTarget>, on connection: inout Connection
    ) throws -> [String: String] {
        let groups = Services.all.filter { service in targets.contains { $0.workers.contains(service) } }
        if groups.isEmpty { return [:] }
        let clock = ContinuousClock()
        let end = clock.now + settleMax
        var work = try InFlightWork(environment, of: groups, by: transport, on: &connection)
        while true {
            let remaining = try work.remaining(on: &connection)
            let time = end - clock.now
            if remaining.isEmpty, transport != nil || time <= .zero { return [:] }
            if time <= .zero { return remaining }
            let pause = remaining.isEmpty ? Duration.seconds(1) : Self.pollInterval
            poll(nil, 0, Int32(min(pause, time).milliseconds))
            if remaining.isEmpty { return [:] }
        }
    }

    private static var pollInterval: Duration { .milliseconds(200) }

    /// The groups that have deferred keys of inconsistencies, with the reasons. They will retry them.
    private func deferredKeys(
        among inconsistencies: [Inconsistency], in environment: (id: EnvironmentID, name: String),
        on connection: inout Connection
    ) throws -> [String: [(group: String, reason: String)]] {
        var deferred: [String: [(group: String, reason: String)]] = [:]
        let affected = inconsistencies.filter { $0.environment == environment.name && !$0.part.workers.isEmpty }
        for page in affected.chunks(ofCount: Self.keysMax) {
            let rows = try connection.run(
                """
                SELECT key, group_name, reason FROM pipeline.parked
                WHERE environment_id = \(environment.id.rawValue) AND key = ANY (\(Array(Set(page.map(\.key)))))
                    AND NOT is_dead
                ORDER BY key, group_name
                """)
            for (key, group, reason) in try rows.decode(String.self, String.self, String.self) {
                deferred[key, default: []].append((group, reason))
            }
        }
        return deferred
    }

    private static var keysMax: Int { 1_000 }

    private func backlogs(on connection: inout Connection) throws -> [Backlog] {
        let ids = environments.map(\.id.rawValue)
        return try connection.run(
            """
            SELECT e.name, CASE WHEN r.generation = e.generation THEN greatest(0, e.position - r.position)
                    ELSE 0 END, p.parked, p.dead
            FROM unnest(\(ids)) AS i(id) JOIN realm.environment e ON e.id = i.id
            LEFT JOIN realm.relay r ON r.environment_id = e.id
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE NOT is_dead) AS parked, count(*) FILTER (WHERE is_dead) AS dead
                FROM pipeline.parked WHERE environment_id = e.id
            ) p
            ORDER BY e.name
            """
        ).decode(String.self, Int64.self, Int64.self, Int64.self)
            .map { Backlog(environment: $0, unpublished: $1, parked: $2, dead: $3) }
    }
}

/// An object or row that contradicts the data that it is derived from.
struct Inconsistency: Encodable, Hashable {
    let environment: String
    let part: CheckTarget
    /// The subject of the event with which the owning service reprocesses it, if there is one; otherwise its location.
    let key: String
    let fault: String
    /// The object's id, which also selects the partition.
    let id: UUID
    /// The position at the time of the check. If it changes between the passes, work was in flight.
    let position: Int64
    /// Work in flight that may resolve it; `nil` if none is known.
    var pending: String?

    private enum CodingKeys: String, CodingKey {
        case environment, key, fault, id, position, pending
        case part = "check"
    }

    /// The sort key of reports.
    fileprivate var order: (String, Int, String, String) {
        (environment, CheckTarget.allCases.firstIndex(of: part) ?? 0, key, fault)
    }

    private var text: String { pending.map { "\(fault) (may be in flight: \($0))" } ?? fault }

    static func table(_ rows: [Inconsistency]) -> Table {
        Table(["ENVIRONMENT", "CHECK", "KEY", "FAULT"], rows) { [$0.environment, $0.part.rawValue, $0.key, $0.text] }
    }
}
