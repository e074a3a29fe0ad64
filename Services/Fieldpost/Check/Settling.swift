import Essentials
import Kafka
import KeyedWorker
import LagMonitoring
import Model
import ObjectStore
import Postgres

/// What was on its way in an environment when it was looked at, and how much of it has not come yet: until it has, what
/// differs may go away by itself.
///
/// In the order of the way: first the relay comes to the position that was the newest, then the groups come to the
/// messages that were the newest by then, and the keys that were due are decided.
struct Settling: ~Copyable {
    private let environment: EnvironmentID
    private let groups: [ServiceDescription]
    private let transport: Transport?
    private var generation: Int64 = 0
    private var position: Int64 = 0
    private var lookedAt: Timestamp = .now()
    /// Where partitions ended when the relay had come there.
    private var ends: [TopicPartition: Int64]?

    /// Where Kafka is, if it is asked.
    struct Transport {
        let brokers: String
        let properties: [String: String]
        /// How long one answer of the brokers is waited for.
        let waitMax: Duration
    }

    /// - Parameter groups: Those whose work is waited for.
    init(
        _ environment: EnvironmentID, of groups: [ServiceDescription], by transport: Transport?,
        on connection: inout Connection
    ) throws {
        (self.environment, self.groups, self.transport) = (environment, groups, transport)
        let rows = try connection.run(
            "SELECT generation, position, now() FROM realm.environment WHERE id = \(environment.rawValue)")
        if let found = try rows.first?.decode(Int64.self, Int64.self, Timestamp.self) {
            (generation, position, lookedAt) = found
        }
    }

    /// What has not come yet, by group; empty: all has.
    mutating func left(on connection: inout Connection) throws -> [String: String] {
        var left: [String: String] = [:]
        let behind = try relayIsBehind(on: &connection)
        if behind > 0 {
            for group in groups { left[group.name] = "change-relay is \(behind) positions behind" }
            return left
        }
        for (group, count) in try due(on: &connection) {
            left[group] = count == 1 ? "\(group) has a key to decide" : "\(group) has \(count) keys to decide"
        }
        if let transport, !groups.isEmpty { left.merge(unread(transport)) { first, _ in first } }
        return left
    }

    private func relayIsBehind(on connection: inout Connection) throws -> Int64 {
        let rows = try connection.run(
            """
            SELECT CASE WHEN generation < \(generation) THEN \(position)
                WHEN generation = \(generation) THEN greatest(0, \(position) - position) ELSE 0 END
            FROM realm.relay WHERE environment_id = \(environment.rawValue)
            """)
        return try rows.first?.decode(Int64.self) ?? 0
    }

    /// The keys that were due when it was looked, or are soon: so are those that a worker had taken, until its lease is
    /// over. Rows: group, count.
    private func due(on connection: inout Connection) throws -> [(String, Int64)] {
        let lease = WorkerLimits().dueLease.milliseconds
        let soon = Timestamp(millisecondsSinceEpoch: lookedAt.millisecondsSinceEpoch + lease)
        return try connection.run(
            """
            SELECT group_name, count(*) FROM pipeline.parked
            WHERE environment_id = \(environment.rawValue) AND NOT is_dead AND next_at <= \(soon)
                AND group_name = ANY (\(groups.map(\.name)))
            GROUP BY group_name
            """
        ).decode(String.self, Int64.self)
    }

    /// The groups that have not finished the messages that there were.
    private mutating func unread(_ transport: Transport) -> [String: String] {
        var left: [String: String] = [:]
        do throws(KafkaError) {
            let reader = try LagReader(
                brokers: transport.brokers, properties: transport.properties, waitMax: transport.waitMax)
            let topics = Dictionary(uniqueKeysWithValues: groups.map { ($0.name, $0.topics.map(\.name)) })
            let look = try reader.look(at: topics, others: false)
            let ends = self.ends ?? look.available.mapValues(\.upperBound)
            if look.problems.isEmpty { self.ends = ends }
            for group in look.groups {
                let count = group.offsets.reduce(Int64(0)) { sum, item in
                    guard let end = ends[item.key], let available = look.available[item.key] else { return sum }
                    let begins = Beginning(partition: item.key, committed: item.value, available: available).start
                    return sum + max(0, end - begins)
                }
                if count > 0 { left[group.name] = "\(group.name) has \(count) messages to read" }
            }
            let offsets = Dictionary(look.groups.map { ($0.name, $0.offsets.keys) }) { first, _ in first }
            for group in groups {
                let isTold = offsets[group.name]?.allSatisfy { look.available[$0] != nil } ?? false
                guard look.problems["group \(group.name)"] != nil || !isTold else { continue }
                left[group.name] = "Kafka does not tell how far \(group.name) is"
            }
        } catch {
            for group in groups { left[group.name] = "Kafka does not tell how far \(group.name) is: \(error)" }
        }
        return left
    }
}
