import Algorithms
import Essentials
import FoundationEssentials
import Glibc
import Model
import ObjectStore
import Postgres

/// Looks for what is not as it should be, twice: what is on its way at the first look has come, or has another
/// position, at the second, and is no fault.
struct ConsistencyCheck {
    /// What an environment still had to do.
    struct Rest: Encodable {
        let environment: String
        /// Positions that are not published yet.
        let unpublished: Int64
        /// Keys that are parked and come back by themselves.
        let parked: Int64
        /// Keys that wait for a person.
        let dead: Int64

        var isAtRest: Bool { unpublished == 0 && parked == 0 }
    }

    struct Outcome: Encodable {
        let inconsistencies: [Inconsistency]
        let rests: [Rest]
        /// More differences may be there than were told.
        let isCut: Bool
    }

    let environments: [(id: EnvironmentID, name: String)]
    let parts: [CheckedPart]
    /// Differences that are told at most, of each part of an environment.
    let countMax: Int
    /// How long what is on its way is waited for between the looks.
    let settleMax: Duration
    /// Where Kafka is asked how far groups are; `nil`: nowhere.
    var transport: Settling.Transport?
    /// Told of each slice that was looked at: how many of how many.
    var progress: (Int, Int) -> Void = { _, _ in }

    /// One statement may take so long: a slice is meant to take less than a second, but ids may lie close together.
    static var limits: Limits {
        var limits = Limits()
        limits.statementMax = .seconds(600)
        return limits
    }

    func run(on connection: inout Connection) throws -> Outcome {
        let sliceCount = CheckSlice.count(objects: try Self.objectCount(on: &connection))
        var (found, isCut) = ([Inconsistency](), false)
        for (number, environment) in environments.enumerated() {
            var places: [CheckedPart: [Int]] = [:]
            for index in 0..<sliceCount {
                let slice = CheckSlice(
                    environment: environment.id, index: index, count: sliceCount, countMax: countMax)
                for part in parts where counts(found, part, environment.name) < countMax {
                    let rows = try look(at: part, slice, environment.name, on: &connection)
                    if !rows.isEmpty { places[part, default: []].append(index) }
                    found += rows
                    isCut = isCut || rows.count >= countMax
                }
                progress(number * sliceCount + index + 1, environments.count * sliceCount)
            }
            if places.isEmpty { continue }
            let left = try settle(environment.id, places.keys, on: &connection)
            // Before the second look: a key that is decided meanwhile is not told, or is marked.
            let parked = try parked(among: found, in: environment, on: &connection)
            var again: Set<Inconsistency> = []
            for (part, indexes) in places {
                for index in indexes {
                    let slice = CheckSlice(
                        environment: environment.id, index: index, count: sliceCount, countMax: countMax * 2)
                    again.formUnion(try look(at: part, slice, environment.name, on: &connection))
                }
            }
            found.removeAll { $0.environment == environment.name && !again.contains($0) }
            for index in found.indices where found[index].environment == environment.name {
                let names = found[index].part.workers.map(\.name)
                found[index].pending =
                    parked[found[index].key]?.first { names.contains($0.group) }.map {
                        "\($0.group) has it parked: \($0.reason)"
                    } ?? names.lazy.compactMap { left[$0] }.first
            }
        }
        return Outcome(inconsistencies: found, rests: try rests(on: &connection), isCut: isCut)
    }

    private func counts(_ found: [Inconsistency], _ part: CheckedPart, _ environment: String) -> Int {
        found.count { $0.part == part && $0.environment == environment }
    }

    private func look(
        at part: CheckedPart, _ slice: CheckSlice, _ name: String, on connection: inout Connection
    ) throws -> [Inconsistency] {
        try connection.run(slice.statement(part)).map { try Inconsistency($0, part, in: name) }
    }

    /// About how many objects there are, as the last ANALYZE found; 0 where there was none.
    private static func objectCount(on connection: inout Connection) throws -> Int {
        let rows = try connection.run("SELECT reltuples::bigint FROM pg_class WHERE oid = 'store.object'::regclass")
        return Int(max(0, try rows[0].decode(Int64.self)))
    }

    // MARK: At rest

    /// Waits until what is on its way has come that may take differences away, `settleMax` and the brokers'
    /// last answer at most; without Kafka's word a second longer, for what workers have in their hands.
    ///
    /// - Returns: What has not come, by group.
    private func settle(
        _ environment: EnvironmentID, _ parts: some Collection<CheckedPart>, on connection: inout Connection
    ) throws -> [String: String] {
        let groups = Services.all.filter { service in parts.contains { $0.workers.contains(service) } }
        if groups.isEmpty { return [:] }
        let clock = ContinuousClock()
        let end = clock.now + settleMax
        var settling = try Settling(environment, of: groups, by: transport, on: &connection)
        while true {
            let left = try settling.left(on: &connection)
            let rest = end - clock.now
            if left.isEmpty, transport != nil || rest <= .zero { return [:] }
            if rest <= .zero { return left }
            let pause = left.isEmpty ? Duration.seconds(1) : Self.lookInterval
            poll(nil, 0, Int32(min(pause, rest).milliseconds))
            if left.isEmpty { return [:] }
        }
    }

    private static var lookInterval: Duration { .milliseconds(200) }

    /// Who has parked which of the keys that differ, and why: they come back by themselves.
    private func parked(
        among found: [Inconsistency], in environment: (id: EnvironmentID, name: String),
        on connection: inout Connection
    ) throws -> [String: [(group: String, reason: String)]] {
        var parked: [String: [(group: String, reason: String)]] = [:]
        let some = found.filter { $0.environment == environment.name && !$0.part.workers.isEmpty }
        for page in some.chunks(ofCount: Self.keysMax) {
            let rows = try connection.run(
                """
                SELECT key, group_name, reason FROM pipeline.parked
                WHERE environment_id = \(environment.id.rawValue) AND key = ANY (\(Array(Set(page.map(\.key)))))
                    AND NOT is_dead
                ORDER BY key, group_name
                """)
            for (key, group, reason) in try rows.decode(String.self, String.self, String.self) {
                parked[key, default: []].append((group, reason))
            }
        }
        return parked
    }

    private static var keysMax: Int { 1_000 }

    private func rests(on connection: inout Connection) throws -> [Rest] {
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
            .map { Rest(environment: $0, unpublished: $1, parked: $2, dead: $3) }
    }
}
