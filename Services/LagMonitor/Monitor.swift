import Essentials
import Kafka
import Lag
import Logging
import Model
import Postgres
import Realms
import Runtime

/// Looks at Kafka and at PostgreSQL, and says what it saw. That one of them is away is no reason not to tell of the
/// other.
struct Monitor: ~Copyable {
    /// How long one answer is waited for.
    private static let waitMax = Duration.seconds(5)
    /// The times of so many messages are asked for in one look, of one group: after it those of the others.
    private static let unknownMax = 500
    /// Whose lag is told from the first message on, and by the times that its messages have.
    private static let ours = Dictionary(
        uniqueKeysWithValues: Services.all.filter { !$0.topics.isEmpty }.map { ($0.name, $0.topics.map(\.name)) })

    private let reader: LagReader
    private let conninfo: String
    private let cluster: String
    private let others: Bool
    private let logger: Logger
    private var connection: Connection?
    private var history = LagHistory()
    private var told: [String: String] = [:]
    private var problems: [String: String] = [:]

    /// Why it does not see all, for people; `nil` when it does.
    var problem: String? {
        problems.isEmpty ? nil : problems.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: "; ")
    }

    /// - Throws: For a property that librdkafka does not know.
    init(
        conninfo: String, brokers: String, properties: [String: String], cluster: String, others: Bool, logger: Logger
    ) throws {
        reader = try LagReader(brokers: brokers, properties: properties, waitMax: Self.waitMax)
        (self.conninfo, self.cluster, self.others, self.logger) = (conninfo, cluster, others, logger)
    }

    /// One look.
    ///
    /// - Returns: What is to be shown now: of what is away, nothing.
    mutating func step() throws -> MetricsPage {
        let start = ContinuousClock.now
        problems = [:]
        var page = MonitorPage(cluster: cluster)
        var parked: [MonitorStore.Parked]?
        do {
            let seen = try lookAtDatabase()
            page.tell(seen.parked)
            page.tell(seen.behind)
            parked = seen.parked
        } catch let error as PostgresError {
            problems["PostgreSQL"] = "\(error)"
        }
        do {
            let look = try reader.look(at: Self.ours, others: others)
            for (what, error) in look.problems { problems[what] = "\(error)" }
            history.take(look)
            for group in Self.ours.keys {
                let unknown = history.unknownAges(of: group).prefix(Self.unknownMax)
                let times = try reader.writtenTimes(of: Dictionary(uniqueKeysWithValues: unknown.map { ($0, $1) }))
                history.learn(times, of: group)
            }
            page.tell(history.lags, members: look.groups)
            if let parked { page.tellBacklog(history.lags, parked) }
        } catch {
            problems["Kafka"] = "\(error)"
        }
        tellProblems()
        page.tell(round: ContinuousClock.now - start, problemCount: problems.count)
        return page.metrics
    }

    private mutating func lookAtDatabase() throws -> (parked: [MonitorStore.Parked], behind: [MonitorStore.Behind]) {
        if connection == nil {
            var opened = try Connection(conninfo)
            try Schema.check(on: &opened)
            connection = consume opened
        }
        guard let answers = try connection?.run([MonitorStore.parked, MonitorStore.behind]) else { return ([], []) }
        return (try MonitorStore.parked(answers[0]), try MonitorStore.behind(answers[1]))
    }

    private mutating func tellProblems() {
        for (source, problem) in problems where told[source] != problem {
            logger.warning("cannot see all", metadata: ["of": "\(source)", "reason": "\(problem)"])
        }
        told = problems
    }
}
