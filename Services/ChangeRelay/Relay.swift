import Essentials
import FoundationEssentials
import Kafka
import KeyedWorker
import Logging
import Metrics
import Model
import ObjectStore
import Postgres

/// Follows the change log of every environment and publishes the latest state of each changed object of a routed kind,
/// in position order (law 1). Nothing else publishes.
///
/// Several pages are on their way at a time; a position is stored once everything up to it was confirmed by the
/// broker. After a crash it starts again from there: what is published twice does nothing by law 3. PostgreSQL reads
/// the next page while this one is sent: each question carries what was confirmed, asks for news and for one page.
struct Relay: ~Copyable {
    /// Pointers read at a time.
    let pageCountMax: Int
    /// Interval between two queries of the brokers for their partitions' end offsets.
    static let lossCheckInterval = Duration.seconds(5)
    /// After so many messages sent, what has arrived of the next page is taken in.
    static let takeInInterval = 32

    /// A question on its way to PostgreSQL.
    struct Asked {
        let confirmed: [RelayProgress.Confirmed]
        let republished: [Republished]
        let page: RelayProgress.Request?
    }

    /// A topic of an environment that was published again.
    struct Republished {
        let environment: EnvironmentID
        let request: Republish.Request
    }

    /// A topic of an environment some of which was not sent.
    struct Owed: Hashable {
        let environment: EnvironmentID
        let topic: String
    }

    /// A page that was read, to be sent.
    struct Outgoing {
        struct Item {
            let row: Row
            let kind: Kind
            let topic: Topic
            let path: RealmPath
        }

        let environment: EnvironmentID
        let objects: [Item]
        let hasTimes: Bool
        let page: Int
    }

    var connection: Connection
    var producer: Producer
    let watch: BrokerWatch
    var directory = RealmDirectory()
    var progress: [EnvironmentID: RelayProgress] = [:]
    var outlets: [EnvironmentID: EventWriter] = [:]
    /// The environments with news; each has its turn.
    var waiting: [EnvironmentID] = []
    var asked: Asked?
    /// Confirmed, and to be stored with the next question.
    var confirmed: [RelayProgress.Confirmed] = []
    /// Environments whose generation was new when it was asked for news: what was published before is of a former one.
    var unprepared: Set<EnvironmentID> = []
    var republished: [Republished] = []
    var obstacles = Obstacles()
    /// Topics that cannot be written, or not all of them, with the reason.
    var blockedTopics: [String: String] = [:]
    /// The reasons that were logged: one that comes back after a new attempt is not said again.
    var lastObstacles: [String: String] = [:]
    /// What was not sent for them: stored in `realm.republish` no later than the position that passes it.
    var owed: Set<Owed> = []
    var newlyOwed: Set<Owed> = []
    /// The last confirmed offset of each partition.
    var offsets: [TopicPartition: Int64] = [:]
    var changedOffsets: [TopicPartition: Int64] = [:]
    /// Messages on their way whose traces are recorded, by the tag of their page.
    var spans: [UInt64: [(span: OpenSpan, work: TraceSpan.Work)]] = [:]
    /// The partitions that ended below their last confirmed offset in the latest poll of the brokers.
    var shortened: Set<TopicPartition> = []
    var lockedOpenCount = -1
    var nextLossCheck = ContinuousClock.now
    /// When the brokers answered last, and why not since.
    var brokersAnsweredAt: ContinuousClock.Instant?
    var brokersFailure: KafkaError?
    /// The brokers that did not answer the last poll.
    var lastSilent: Set<Int32> = []
    var lastSent: ContinuousClock.Instant?
    /// When each page that is in flight was sent, by its tag.
    var sentAt: [UInt64: ContinuousClock.Instant] = [:]
    /// When a message was confirmed last, of any partition.
    var lastConfirmed: ContinuousClock.Instant?
    /// An answer has come from PostgreSQL since this relay is the active one.
    var hasReceived = false
    var compactor = Compactor()
    let published = Metrics.Counter(label: "messaging.client.sent.messages")
    let routing = Routing()
    let logger: Logger

    /// - Parameter conninfo: The relay has a connection of its own: its session holds the lock of the active relay.
    init(
        conninfo: String, brokers: String, properties: [String: String], logger: Logger, pageCountMax: Int = 4_000
    ) throws {
        var connection = try Connection(conninfo, limits: .ofLockHolder, check: Lineage.check)
        try Schema.check(on: &connection)
        // A message waits for its partition's leader for so long: what follows it in its environment waits with it.
        let defaults = ["message.timeout.ms": "10000"]
        let producer = try Producer(brokers: brokers, properties: defaults.merging(properties) { $1 })
        let watch = try BrokerWatch(brokers: brokers, properties: properties)
        self.connection = connection
        self.producer = producer
        self.watch = watch
        self.logger = logger
        self.pageCountMax = pageCountMax
    }

    /// Publishes what there is, a bounded amount, and waits at most `waitMax` when there is nothing.
    ///
    /// - Returns: Whether this relay is the active one.
    /// - Throws: `PostgresError`, `KafkaError`, `ContentLost` or `BrokersSilent`; make a new relay then.
    mutating func step(waitMax: Duration) throws -> Bool {
        try checkForLoss()
        guard try mayPublish() else { return false }
        if asked == nil { try ask(nextRequest()) }
        let page = try receive()
        if let request = nextRequest() { try ask(request) }
        let sentCount = try page.map { try send($0) } ?? 0
        published.increment(by: sentCount)
        if sentCount > 0 { lastSent = .now }
        let isInFlight = progress.values.contains { $0.isInFlight }
        try confirm(
            producer.deliveries(
                waitMax: asked != nil || sentCount > 0 ? .zero : isInFlight ? .milliseconds(2) : waitMax))
        return true
    }

    /// Something was published in the last seconds: more is likely to come.
    var isLively: Bool { lastSent.map { ContinuousClock.now - $0 < .seconds(3) } ?? false }

    /// Removes what nobody needs any more, one bounded step at a call, of each environment once in `interval`.
    ///
    /// Only the active relay calls it: the floor must not pass what is published.
    mutating func compact(keep: Duration, interval: Duration) throws {
        try compactor.step(keep: keep, interval: interval, on: &connection)
    }

    /// One session holds an advisory lock; it is gone with the connection.
    mutating func isActive() throws -> Bool {
        if isLeader { return true }
        guard try connection.run(RelayStore.tryLock())[0].decode(Bool.self) else { return false }
        lockedOpenCount = connection.openCount
        progress = [:]
        (sentAt, hasReceived) = ([:], false)
        (offsets, shortened) = ([:], [])
        for (topic, partition, last) in try connection.run(RelayStore.offsets)
            .decode(String.self, Int32.self, Int64.self)
        {
            offsets[TopicPartition(topic: topic, partition: partition)] = last
        }
        nextLossCheck = .now
        logger.notice("this relay is the active one")
        return true
    }

    // MARK: Reading

    /// The page whose turn it is.
    mutating func nextRequest() -> RelayProgress.Request? {
        for index in waiting.indices {
            guard let request = progress[waiting[index]]?.request else { continue }
            waiting.append(waiting.remove(at: index))
            return request
        }
        return nil
    }

    /// Sends a question: one transaction that stores what was confirmed, asks for news, and reads the page.
    mutating func ask(_ request: RelayProgress.Request?) throws {
        // What was published of a generation that is over is not stored.
        confirmed.removeAll { unprepared.contains($0.environment) }
        var statements = confirmed.map(RelayStore.store)
        statements += newlyOwed.map { Republish.ask($0.topic, in: $0.environment) }
        newlyOwed = []
        statements += republished.map { Republish.done($0.request, in: $0.environment) }
        if !changedOffsets.isEmpty {
            statements.append(RelayStore.store(changedOffsets))
            changedOffsets = [:]
        }
        statements.append(RelayStore.news(except: blockedTopics.keys.sorted()))
        if let request { statements.append(page(request)) }
        try connection.start(statements)
        asked = Asked(confirmed: confirmed, republished: republished, page: request)
        confirmed = []
        republished = []
    }

    func page(_ request: RelayProgress.Request) -> Statement {
        let kinds = routing.kinds
        switch request.start {
        case .changes(let position):
            return Feed.changes(in: request.environment, after: position, kinds: kinds, countMax: pageCountMax)
        case .objects(let place):
            return RelayStore.objects(in: request.environment, kinds: kinds, after: place, countMax: pageCountMax)
        case .topic(let name, let place):
            let kinds = routing.kinds(of: name)
            return RelayStore.objects(in: request.environment, kinds: kinds, after: place, countMax: pageCountMax)
        }
    }

    /// Takes the answer in: what others did, the news, and the page.
    mutating func receive() throws -> Outgoing? {
        guard let asked = asked.take() else { return nil }
        var answers = try connection.finish()
        hasReceived = true
        for (answer, confirmed) in zip(answers, asked.confirmed) {
            if answer.affectedCount == 0 { throw TakenOver() }
            if confirmed.isRepublished {
                logger.notice(
                    "published every routed object again",
                    metadata: [
                        "environment": "\(confirmed.environment)", "generation": "\(confirmed.generation)",
                        "epoch": "\(confirmed.epoch)",
                    ])
            }
        }
        for done in asked.republished {
            logger.notice(
                "published a topic again",
                metadata: ["environment": "\(done.environment)", "topic": "\(done.request.topic)"])
        }
        let rows = asked.page == nil ? nil : answers.popLast()
        if let news = answers.last { try note(news) }
        guard let request = asked.page, let rows else { return nil }
        return try take(rows, of: request)
    }

    mutating func note(_ news: Rows) throws {
        let (tasks, unprepared) = try RelayStore.tasks(news)
        if !unprepared.isEmpty { try connection.run(RelayStore.prepare) }
        self.unprepared = unprepared
        for task in tasks {
            progress[task.environment, default: RelayProgress(task)].update(task)
            if outlets[task.environment]?.isOf(generation: task.generation, epoch: task.epoch) != true {
                outlets[task.environment] = EventWriter(
                    environment: task.environment, generation: task.generation, epoch: task.epoch)
                confirmed.removeAll {
                    $0.environment == task.environment
                        && ($0.generation, $0.epoch) != (task.generation, task.epoch)
                }
            }
        }
        let environments = tasks.map(\.environment)
        waiting = waiting.filter(Set(environments).contains) + environments.filter { !waiting.contains($0) }
    }

    /// Counts the page, and finds what its messages need; `nil` when the work began anew since it was asked for.
    mutating func take(_ rows: Rows, of request: RelayProgress.Request) throws -> Outgoing? {
        guard var current = progress[request.environment], current.awaits(request) else { return nil }
        let hasTimes = if case .changes = request.start { true } else { false }
        let objects = try publishable(rows, in: request.environment, isCurrentColumn: hasTimes ? 6 : nil)
        let outgoing = Outgoing(
            environment: request.environment, objects: objects, hasTimes: hasTimes, page: current.nextPage)
        let last = rows.count > 0 ? rows[rows.count - 1] : nil
        switch request.start {
        case .changes:
            current.readChanges(through: try last?.value(0), sendCount: objects.count)
        case .objects: current.readObjects(through: try place(after: rows), sendCount: objects.count)
        case .topic: current.readTopic(through: try place(after: rows), sendCount: objects.count)
        }
        progress[request.environment] = current
        if objects.isEmpty { takeConfirmed(of: request.environment) }
        return outgoing
    }

    /// Where the objects after these begin; `nil` when these were the last.
    func place(after rows: Rows) throws -> RelayProgress.ObjectPlace? {
        guard rows.count == pageCountMax else { return nil }
        let row = rows[rows.count - 1]
        return RelayProgress.ObjectPlace(realm: try row.value(1), kind: try row.value(2), id: try row.value(3))
    }

    /// The rows that are events, with their topics and realms: not those of a kind, or in a realm, nobody reacts to.
    mutating func publishable(
        _ rows: Rows, in environment: EnvironmentID, isCurrentColumn: Int?
    ) throws -> [Outgoing.Item] {
        var wanted: [(row: Row, route: Routing.Entry, realm: Int32)] = []
        wanted.reserveCapacity(rows.count)
        for row in rows {
            if let isCurrentColumn, try !row.value(isCurrentColumn, as: Bool.self) { continue }
            guard let route = routing.entry(of: try row.value(2)) else { continue }
            wanted.append((row, route, try row.value(1)))
        }
        let realms = try directory.realms(of: Set(wanted.map(\.realm)), in: environment, on: &connection)
        return wanted.compactMap { row, route, number in
            guard let realm = realms[number] else {
                logger.error("a realm without a usable path is not published", metadata: ["realm": "\(number)"])
                return nil
            }
            guard route.includes(realm.realmClass) else { return nil }
            return Outgoing.Item(row: row, kind: route.kind, topic: route.topic, path: realm.path)
        }
    }

    /// The broker lost its content. A new epoch has begun; the next relay publishes every routed object again.
    struct ContentLost: Error, CustomStringConvertible {
        let partition: TopicPartition
        let last: Int64
        let found: Int64
        var description: String {
            "the broker lost its content (\(partition): confirmed up to \(last), now \(found)); publishing all again"
        }
    }

    /// Another relay has moved the position: it is the active one now.
    struct TakenOver: Error, CustomStringConvertible {
        var description: String { "another relay took over" }
    }
}
