import Essentials
import Kafka
import LagMonitoring
import Logging
import Model
import ObjectStore
import Postgres
import ServiceRuntime
import Telemetry

/// Collects the state of Kafka and of PostgreSQL, and exports it. If one of them is unavailable, the other is still
/// exported.
struct Monitor: ~Copyable {
    /// Timeout of one query.
    private static let waitMax = Duration.seconds(5)
    /// Maximum number of messages whose write time is queried per collection cycle.
    private static let unknownMax = 2_000
    /// Fieldpost's groups with their topics. Their lag includes all messages, and ages are exact.
    private static let ownGroups = Dictionary(
        uniqueKeysWithValues: Services.all.filter { !$0.topics.isEmpty }.map { ($0.name, $0.topics.map(\.name)) })

    private let reader: LagReader
    private let conninfo: String
    private let cluster: String
    private let others: Bool
    private let partitionCountMax: Int
    private let board: SnapshotBoard
    private let logger: Logger
    private var connection: Connection?
    private var history = LagHistory()
    private var retentions: Retentions
    private var logged: [String: String] = [:]
    private var problems: [String: String] = [:]

    /// The reason why Kafka or PostgreSQL is unavailable; `nil` if both are available.
    var problem: String? {
        let outages = problems.filter { $0.key == Self.database || $0.key == Self.brokers }
        return outages.isEmpty ? nil : outages.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: "; ")
    }

    private static let database = "PostgreSQL"
    private static let brokers = "Kafka"

    /// - Throws: For a property that librdkafka rejects.
    init(
        conninfo: String, brokers: String, properties: [String: String], cluster: String, others: Bool,
        partitionCountMax: Int, board: SnapshotBoard, logger: Logger
    ) throws {
        reader = try LagReader(brokers: brokers, properties: properties, waitMax: Self.waitMax)
        (self.conninfo, self.cluster, self.others, self.logger) = (conninfo, cluster, others, logger)
        (self.partitionCountMax, self.board, retentions) = (partitionCountMax, board, Retentions(of: Topics.all))
    }

    /// Runs one collection cycle.
    ///
    /// - Returns: The current metrics, without those of an unavailable system.
    mutating func step() throws -> MetricsPage {
        let start = ContinuousClock.now
        problems = [:]
        var page = LagPage(cluster: cluster, partitionCountMax: partitionCountMax)
        var snapshot = MonitorSnapshot()
        let parked = try exportDatabase(to: &page, &snapshot)
        do {
            let lag = try reader.snapshot(of: Self.ownGroups, others: others)
            for (subject, error) in lag.problems { problems[subject] = "\(error)" }
            history.take(lag)
            // The messages since the previous snapshot are counted once: failed ages must not lose them.
            do { try loadAges() } catch { problems[Self.brokers] = "\(error)" }
            let lags = history.lags
            let topics = Set(lag.available.keys.map(\.topic))
            if retentions.isDue(topics, at: start) { loadRetentions(of: topics, at: start) }
            problems["retentions"] = retentions.problem
            page.export(lags, retentions: retentions.known)
            page.export(lag.groups, rebalances: history.rebalanceCounts)
            if let parked { page.exportBacklog(lags, parked) }
            snapshot.take(lags)
            snapshot.take(lag.groups)
            // Only now: the console must distinguish an hour without data from an hour without messages.
            snapshot.at = Timestamp(millisecondsSinceEpoch: lag.milliseconds)
        } catch {
            problems[Self.brokers] = "\(error)"
        }
        snapshot.problems = problems
        board.publish(snapshot)
        logProblems()
        page.export(cycle: ContinuousClock.now - start, problemCount: problems.count)
        return page.metrics
    }

    /// - Returns: `nil` if PostgreSQL is unavailable.
    private mutating func exportDatabase(
        to page: inout LagPage, _ snapshot: inout MonitorSnapshot
    ) throws -> [MonitorStore.Parked]? {
        do {
            let results = try queryDatabase()
            let (parked, reasons) = (try MonitorStore.parked(results[0]), try MonitorStore.reasons(results[1]))
            let (behind, circuits) = (try MonitorStore.behind(results[2]), try MonitorStore.circuits(results[3]))
            (snapshot.parked, snapshot.reasons, snapshot.behind) = (parked, reasons, behind)
            snapshot.circuits = circuits
            page.export(snapshot.parked)
            page.export(snapshot.reasons)
            page.export(circuits)
            page.export(snapshot.behind)
            page.export(archiveAge: try results[4].decode(Double.self).first)
            return snapshot.parked
        } catch let error as PostgresError {
            problems[Self.database] = "\(error)"
            return nil
        }
    }

    private mutating func loadRetentions(of topics: Set<String>, at now: ContinuousClock.Instant) {
        let result = Result { () throws(KafkaError) in try reader.retentions(of: topics) }
        retentions.update(result, of: topics, at: now)
    }

    /// Queries when the oldest unfinished messages of Fieldpost's groups were written, for all groups at once. If two
    /// groups are at different offsets of a partition, one of them waits for the next cycle.
    private mutating func loadAges() throws(KafkaError) {
        var requested: [TopicPartition: Int64] = [:]
        var groups: [String: [TopicPartition: Int64]] = [:]
        for group in Self.ownGroups.keys.sorted() {
            for (partition, offset) in history.offsetsOfUnknownAge(of: group) {
                guard requested.count < Self.unknownMax, requested[partition] ?? offset == offset else { continue }
                requested[partition] = offset
                groups[group, default: [:]][partition] = offset
            }
        }
        let times = try reader.writtenTimes(of: requested)
        for (group, offsets) in groups { history.learn(times.filter { offsets[$0.key] != nil }, of: group) }
    }

    private mutating func queryDatabase() throws -> [Rows] {
        if connection == nil {
            var opened = try Connection(conninfo, limits: .monitor)
            try Schema.check(on: &opened)
            connection = consume opened
        }
        return try connection?.run([
            MonitorStore.parked, MonitorStore.reasons, MonitorStore.behind, MonitorStore.circuits,
            MonitorStore.archiveAge,
        ]) ?? []
    }

    private mutating func logProblems() {
        for (source, problem) in problems where logged[source] != problem {
            logger.warning("collection failed", metadata: ["source": "\(source)", "reason": "\(problem)"])
        }
        logged = problems
    }
}
