import Essentials
import Kafka
import KeyedWorker
import LagMonitoring
import Model
import Postgres

/// The work of an environment that was in flight at one moment, and the part that remains. Until it is finished,
/// inconsistencies may resolve themselves.
///
/// In the order of processing: first the relay publishes up to the newest position, then the groups read the messages
/// that were the newest at that time and process the keys that were due.
struct InFlightWork: ~Copyable {
    private let environment: EnvironmentID
    private let groups: [ServiceDescription]
    private let transport: Transport?
    private var generation: Int64 = 0
    private var position: Int64 = 0
    private var startedAt: Timestamp = .now()
    /// The end offsets of the partitions when the relay had reached the position.
    private var ends: [TopicPartition: Int64]?

    /// The connection to Kafka.
    struct Transport {
        let brokers: String
        let properties: [String: String]
        /// Maximum time to wait for one response of the brokers.
        let waitMax: Duration
    }

    /// - Parameter groups: The groups whose work is waited for.
    init(
        _ environment: EnvironmentID, of groups: [ServiceDescription], by transport: Transport?,
        on connection: inout Connection
    ) throws {
        (self.environment, self.groups, self.transport) = (environment, groups, transport)
        let rows = try connection.run(
            "SELECT generation, position, now() FROM realm.environment WHERE id = \(environment.rawValue)")
        if let row = try rows.first?.decode(Int64.self, Int64.self, Timestamp.self) {
            (generation, position, startedAt) = row
        }
    }

    /// Returns the remaining work by group; empty if all is finished.
    mutating func remaining(on connection: inout Connection) throws -> [String: String] {
        var remaining: [String: String] = [:]
        let behind = try relayLag(on: &connection)
        if behind > 0 {
            for group in groups { remaining[group.name] = "change-relay is \(behind) positions behind" }
            return remaining
        }
        for (group, count) in try due(on: &connection) {
            remaining[group] = count == 1 ? "\(group) has 1 due key" : "\(group) has \(count) due keys"
        }
        if let transport, !groups.isEmpty { remaining.merge(unread(transport)) { first, _ in first } }
        return remaining
    }

    private func relayLag(on connection: inout Connection) throws -> Int64 {
        let rows = try connection.run(
            """
            SELECT CASE WHEN generation < \(generation) THEN \(position)
                WHEN generation = \(generation) THEN greatest(0, \(position) - position) ELSE 0 END
            FROM realm.relay WHERE environment_id = \(environment.rawValue)
            """)
        return try rows.first?.decode(Int64.self) ?? 0
    }

    /// Counts the keys that were due at the start, or within a lease: a key in flight has a lease until then. Rows:
    /// group, count.
    private func due(on connection: inout Connection) throws -> [(String, Int64)] {
        let soon = startedAt.adding(WorkerLimits().dueLease)
        return try connection.run(
            """
            SELECT group_name, count(*) FROM pipeline.parked
            WHERE environment_id = \(environment.rawValue) AND NOT is_dead AND next_at <= \(soon)
                AND group_name = ANY (\(groups.map(\.name)))
            GROUP BY group_name
            """
        ).decode(String.self, Int64.self)
    }

    /// Returns the groups that have not committed the messages available at the start.
    private mutating func unread(_ transport: Transport) -> [String: String] {
        var remaining: [String: String] = [:]
        do throws(KafkaError) {
            let reader = try LagReader(
                brokers: transport.brokers, properties: transport.properties, waitMax: transport.waitMax)
            let topics = Dictionary(uniqueKeysWithValues: groups.map { ($0.name, $0.topics.map(\.name)) })
            let snapshot = try reader.snapshot(of: topics, others: false)
            let ends = self.ends ?? snapshot.available.mapValues(\.upperBound)
            if snapshot.problems.isEmpty { self.ends = ends }
            for group in snapshot.groups {
                let count = group.offsets.reduce(Int64(0)) { sum, item in
                    guard let end = ends[item.key], let available = snapshot.available[item.key] else { return sum }
                    let begins = Beginning(partition: item.key, committed: item.value, available: available).start
                    return sum + max(0, end - begins)
                }
                if count > 0 { remaining[group.name] = "\(group.name) has \(count) unread messages" }
            }
            let offsets = Dictionary(snapshot.groups.map { ($0.name, $0.offsets.keys) }) { first, _ in first }
            for group in groups {
                let isComplete = offsets[group.name]?.allSatisfy { snapshot.available[$0] != nil } ?? false
                guard snapshot.problems["group \(group.name)"] != nil || !isComplete else { continue }
                remaining[group.name] = "the offsets of \(group.name) are unavailable"
            }
        } catch {
            for group in groups { remaining[group.name] = "the offsets of \(group.name) are unavailable: \(error)" }
        }
        return remaining
    }
}
