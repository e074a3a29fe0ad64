import Essentials
import Kafka
import LagMonitoring
import Logging
import Model
import ObjectStore
import Postgres
import ServiceRuntime
import Telemetry

/// Looks at Kafka and at PostgreSQL, and says what it saw. That one of them is away is no reason not to tell of the
/// other.
struct Monitor: ~Copyable {
    /// How long one answer is waited for.
    private static let waitMax = Duration.seconds(5)
    /// The times of so many messages are asked for in one look.
    private static let unknownMax = 2_000
    /// A look has to end before it is taken for a stall.
    private static var limits: Limits {
        var limits = Limits(lockMax: .seconds(2))
        (limits.statementMax, limits.tcpUserMax) = (.seconds(5), .seconds(5))
        return limits
    }

    /// Whose lag is told from the first message on, and by the times that its messages have.
    private static let ours = Dictionary(
        uniqueKeysWithValues: Services.all.filter { !$0.topics.isEmpty }.map { ($0.name, $0.topics.map(\.name)) })

    private let reader: LagReader
    private let conninfo: String
    private let cluster: String
    private let others: Bool
    private let placeMax: Int
    private let board: LookBoard
    private let logger: Logger
    private var connection: Connection?
    private var history = LagHistory()
    private var retentions: Retentions
    private var told: [String: String] = [:]
    private var problems: [String: String] = [:]

    /// What is away as a whole, for people; `nil` when nothing is.
    var problem: String? {
        let away = problems.filter { $0.key == Self.database || $0.key == Self.brokers }
        return away.isEmpty ? nil : away.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: "; ")
    }

    private static let database = "PostgreSQL"
    private static let brokers = "Kafka"

    /// - Throws: For a property that librdkafka does not know.
    init(
        conninfo: String, brokers: String, properties: [String: String], cluster: String, others: Bool, placeMax: Int,
        board: LookBoard, logger: Logger
    ) throws {
        reader = try LagReader(brokers: brokers, properties: properties, waitMax: Self.waitMax)
        (self.conninfo, self.cluster, self.others, self.logger) = (conninfo, cluster, others, logger)
        (self.placeMax, self.board, retentions) = (placeMax, board, Retentions(of: Topics.all))
    }

    /// One look.
    ///
    /// - Returns: What is to be shown now: of what is away, nothing.
    mutating func step() throws -> MetricsPage {
        let start = ContinuousClock.now
        problems = [:]
        var page = LagPage(cluster: cluster, placeMax: placeMax)
        var seen = Look()
        let parked = try tellDatabase(to: &page, &seen)
        do {
            let look = try reader.look(at: Self.ours, others: others)
            for (what, error) in look.problems { problems[what] = "\(error)" }
            history.take(look)
            try learnAges()
            let lags = history.lags
            let topics = Set(look.available.keys.map(\.topic))
            if retentions.isDue(topics, at: start) { learnRetentions(of: topics, at: start) }
            problems["retentions"] = retentions.problem
            page.tell(lags, retentions: retentions.known)
            page.tell(look.groups, rebalances: history.rebalanceCounts)
            if let parked { page.tellBacklog(lags, parked) }
            seen.take(lags)
            // An hour of nothing is no picture of an hour in which nothing was seen.
            seen.at = Timestamp(millisecondsSinceEpoch: look.milliseconds)
        } catch {
            problems[Self.brokers] = "\(error)"
        }
        seen.problems = problems
        board.publish(seen)
        tellProblems()
        page.tell(round: ContinuousClock.now - start, problemCount: problems.count)
        return page.metrics
    }

    /// - Returns: `nil` when PostgreSQL is away.
    private mutating func tellDatabase(to page: inout LagPage, _ look: inout Look) throws -> [MonitorStore.Parked]? {
        do {
            let seen = try lookAtDatabase()
            page.tell(seen.parked)
            page.tell(seen.reasons)
            page.tell(seen.circuits)
            page.tell(seen.behind)
            (look.parked, look.reasons, look.behind) = (seen.parked, seen.reasons, seen.behind)
            return seen.parked
        } catch let error as PostgresError {
            problems[Self.database] = "\(error)"
            return nil
        }
    }

    private mutating func learnRetentions(of topics: Set<String>, at now: ContinuousClock.Instant) {
        do throws(KafkaError) {
            retentions.take(.success(try reader.retentions(of: topics)), of: topics, at: now)
        } catch {
            retentions.take(.failure(error), of: topics, at: now)
        }
    }

    /// Asks when the oldest messages were written that our groups have not finished: of all groups at a time, and where
    /// two of them are at different places of a partition, of one now and of the other with the next look.
    private mutating func learnAges() throws(KafkaError) {
        var asked: [TopicPartition: Int64] = [:]
        var groups: [String: [TopicPartition: Int64]] = [:]
        for group in Self.ours.keys.sorted() {
            for (partition, offset) in history.unknownAges(of: group) {
                guard asked.count < Self.unknownMax, asked[partition] ?? offset == offset else { continue }
                asked[partition] = offset
                groups[group, default: [:]][partition] = offset
            }
        }
        let times = try reader.writtenTimes(of: asked)
        for (group, offsets) in groups { history.learn(times.filter { offsets[$0.key] != nil }, of: group) }
    }

    private struct DatabaseLook {
        var parked: [MonitorStore.Parked] = []
        var reasons: [MonitorStore.Reason] = []
        var behind = MonitorStore.Behind()
        var circuits: [MonitorStore.OpenCircuit] = []
    }

    private mutating func lookAtDatabase() throws -> DatabaseLook {
        if connection == nil {
            var opened = try Connection(conninfo, limits: Self.limits)
            try Schema.check(on: &opened)
            connection = consume opened
        }
        guard
            let answers = try connection?.run([
                MonitorStore.parked, MonitorStore.reasons, MonitorStore.behind, MonitorStore.circuits,
            ])
        else { return DatabaseLook() }
        return DatabaseLook(
            parked: try MonitorStore.parked(answers[0]), reasons: try MonitorStore.reasons(answers[1]),
            behind: try MonitorStore.behind(answers[2]), circuits: try MonitorStore.circuits(answers[3]))
    }

    private mutating func tellProblems() {
        for (source, problem) in problems where told[source] != problem {
            logger.warning("cannot see all", metadata: ["of": "\(source)", "reason": "\(problem)"])
        }
        told = problems
    }
}
