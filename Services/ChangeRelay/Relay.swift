import Essentials
import FoundationEssentials
import Kafka
import KeyedWorker
import Logging
import Metrics
import Model
import ObjectStore
import Postgres

/// Reads the change logs of all environments and publishes the latest state of each changed object of a published kind,
/// in position order (law 1). No other component publishes.
///
/// Several pages are in flight at a time. A position is stored when the broker has confirmed everything up to it. After
/// a restart, publishing resumes there: duplicates have no effect by law 3. PostgreSQL reads the next page while this
/// one is sent: each query stores confirmed positions, and returns the environments with changes and one page.
struct Relay: ~Copyable {
    /// Maximum number of pointers read per page.
    let pageCountMax: Int
    /// Interval between two queries of the brokers for their partitions' end offsets.
    static let lossCheckInterval = Duration.seconds(5)
    /// The number of sent messages after which available results of the next page are buffered.
    static let bufferInterval = 32

    /// A query in flight to PostgreSQL.
    struct PendingQuery {
        let confirmed: [RelayProgress.Confirmed]
        let republished: [Republished]
        let page: RelayProgress.Request?
        /// Whether it requests a notification of new positions.
        let isAwaiting: Bool
    }

    /// A republished topic of an environment.
    typealias Republished = (environment: EnvironmentID, request: Republish.Request)

    /// A topic of an environment of which some messages were not sent.
    struct DeferredTopic: Hashable {
        let environment: EnvironmentID
        let topic: String
    }

    /// A page of objects to send.
    struct OutgoingPage {
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
    let brokerMonitor: BrokerMonitor
    var directory = RealmDirectory()
    var progress: [EnvironmentID: RelayProgress] = [:]
    var outlets: [EnvironmentID: EventWriter] = [:]
    /// The environments with changes, processed in round-robin order.
    var waiting: [EnvironmentID] = []
    var pendingQuery: PendingQuery?
    /// Confirmed positions to be stored with the next query.
    var confirmed: [RelayProgress.Confirmed] = []
    /// Environments with a new generation, whose previously published positions must not be stored.
    var unprepared: Set<EnvironmentID> = []
    var republished: [Republished] = []
    var unwritable = UnwritablePartitions()
    /// Topics that cannot be written, or not completely, with the reason.
    var blockedTopics: [String: String] = [:]
    /// The logged reasons, so that a reason that recurs after a retry is not logged again.
    var loggedReasons: [String: String] = [:]
    /// Topics with messages that were not sent; stored in `realm.republish` no later than the position that passes
    /// them.
    var deferred: Set<DeferredTopic> = []
    var newlyDeferred: Set<DeferredTopic> = []
    /// The last confirmed offset of each partition.
    var offsets: [TopicPartition: Int64] = [:]
    var changedOffsets: [TopicPartition: Int64] = [:]
    /// The spans of messages in flight, by the tag of their page.
    var spans: [UInt64: [(span: OpenSpan, work: TraceSpan.Work)]] = [:]
    /// The partitions that ended below their last confirmed offset in the latest poll of the brokers.
    var shortened: Set<TopicPartition> = []
    var lockedOpenCount = -1
    var nextLossCheck = ContinuousClock.now
    /// The time of the brokers' last response, and the failure since.
    var brokersRespondedAt: ContinuousClock.Instant?
    var brokersFailure: KafkaError?
    /// The brokers that did not respond to the last poll.
    var lastUnresponsive: Set<Int32> = []
    /// The time of the last page or notification.
    var lastRead: ContinuousClock.Instant?
    /// Whether the next change is notified: there was none at the last query.
    var isAwaiting = false
    /// The time at which each page in flight was sent, by tag.
    var sentAt: [UInt64: ContinuousClock.Instant] = [:]
    /// The time of the last confirmation, for any partition.
    var lastConfirmed: ContinuousClock.Instant?
    /// Whether PostgreSQL has responded since this relay became the leader.
    var hasReceived = false
    var compactor = Compactor()
    let published = Metrics.Counter(label: "messaging.client.sent.messages")
    let routing = Routing()
    /// The topics of kinds that environments declare, as far as pages were read.
    var ownTopics: Set<String> = []
    let logger: Logger

    /// - Parameter conninfo: The relay has a separate connection, whose session holds the leader's lock.
    init(
        conninfo: String, brokers: String, properties: [String: String], logger: Logger, pageCountMax: Int = 4_000
    ) throws {
        var connection = try Connection(conninfo, limits: .lockHolder, check: Lineage.check)
        try Schema.check(on: &connection, oldest: AwaitedPositions.schemaOldest)
        // The time that a message waits for its partition's leader; later messages of its environment wait too.
        let defaults = ["message.timeout.ms": "10000"]
        let producer = try Producer(brokers: brokers, properties: defaults.merging(properties) { $1 })
        let brokerMonitor = try BrokerMonitor(brokers: brokers, properties: properties)
        self.connection = connection
        self.producer = producer
        self.brokerMonitor = brokerMonitor
        self.logger = logger
        self.pageCountMax = pageCountMax
    }

    /// Publishes a limited number of changes. If there are none, waits at most `waitMax` for the next one.
    ///
    /// - Returns: Whether this relay is the leader.
    /// - Throws: `PostgresError`, `KafkaError`, `ContentLost` or `BrokersUnavailable`; create a new relay then.
    mutating func step(waitMax: Duration) throws -> Bool {
        try checkForLoss()
        guard try mayPublish() else { return false }
        let isInFlight = progress.values.contains { $0.isInFlight }
        if pendingQuery == nil { try sendQuery(nextRequest(), isAwaiting: !isInFlight && !isBusy) }
        let page = try receive()
        if page != nil { lastRead = .now }
        if let request = nextRequest() { try sendQuery(request) }
        let sentCount = try page.map { try send($0) } ?? 0
        published.increment(by: sentCount)
        try confirm(wait(atMost: pendingQuery != nil || sentCount > 0 ? .zero : waitMax, isInFlight: isInFlight))
        return true
    }

    /// Removes obsolete data of the change log, one limited step per call, of each environment once per `interval`.
    ///
    /// Only the leader calls it: the floor must not pass the published position.
    mutating func compact(keep: Duration, interval: Duration) throws {
        try compactor.step(keep: keep, interval: interval, on: &connection)
    }

    /// Acquires leadership if possible: an advisory lock of the session, which ends with the connection.
    mutating func acquireLeadership() throws -> Bool {
        if isLeader { return true }
        guard try connection.run(RelayStore.tryLock())[0].decode(Bool.self) else { return false }
        lockedOpenCount = connection.openCount
        try connection.run(AwaitedPositions.listen)
        progress = [:]
        (sentAt, hasReceived) = ([:], false)
        (offsets, shortened) = ([:], [])
        for (topic, partition, last) in try connection.run(RelayStore.offsets)
            .decode(String.self, Int32.self, Int64.self)
        {
            offsets[TopicPartition(topic: topic, partition: partition)] = last
        }
        nextLossCheck = .now
        logger.notice("became leader")
        return true
    }

    // MARK: Reading

    /// Returns the next page to read, in round-robin order.
    mutating func nextRequest() -> RelayProgress.Request? {
        for index in waiting.indices {
            guard let request = progress[waiting[index]]?.request else { continue }
            waiting.append(waiting.remove(at: index))
            return request
        }
        return nil
    }

    /// Sends a query: one transaction that stores confirmed positions, and reads the environments with changes and the
    /// page.
    mutating func sendQuery(_ request: RelayProgress.Request?, isAwaiting: Bool = false) throws {
        // Positions published for a previous generation are not stored.
        confirmed.removeAll { unprepared.contains($0.environment) }
        let storesOnlyPositions =
            newlyDeferred.isEmpty && republished.isEmpty && !confirmed.contains(where: \.isRepublished)
        var statements = confirmed.map(RelayStore.store)
        statements += newlyDeferred.map { Republish.request($0.topic, in: $0.environment) }
        newlyDeferred = []
        statements += republished.map { Republish.done($0.request, in: $0.environment) }
        if !changedOffsets.isEmpty {
            statements.append(RelayStore.store(changedOffsets))
            changedOffsets = [:]
        }
        // A failure of the server may undo the positions. Pages are then republished, which changes nothing.
        if !statements.isEmpty, storesOnlyPositions { statements.append(.asynchronousCommit) }
        let isAwaiting = isAwaiting && request == nil && statements.isEmpty
        if isAwaiting { statements = AwaitedPositions.request(where: EnvironmentCounter.works) }
        statements.append(RelayStore.pendingEnvironments(except: blockedTopics.keys.sorted()))
        // The kinds are read after the page, so that none of its rows is of a kind that was declared in between.
        if let request { statements += [page(request), RelayStore.ownKinds(in: request.environment)] }
        try connection.start(statements)
        pendingQuery = PendingQuery(
            confirmed: confirmed, republished: republished, page: request, isAwaiting: isAwaiting)
        confirmed = []
        republished = []
    }

    func page(_ request: RelayProgress.Request) -> Statement {
        let kinds = routing.kinds
        switch request.start {
        case .changes(let position):
            return Feed.changes(
                in: request.environment, after: position, kinds: kinds, own: .published, countMax: pageCountMax)
        case .objects(let cursor):
            return RelayStore.objects(
                in: request.environment, kinds: kinds, topic: nil, after: cursor, countMax: pageCountMax)
        case .topic(let name, let cursor):
            return RelayStore.objects(
                in: request.environment, kinds: routing.kinds(of: name), topic: name, after: cursor,
                countMax: pageCountMax)
        }
    }

    /// Receives the result: whether another relay took over, the environments with changes, and the page.
    mutating func receive() throws -> OutgoingPage? {
        guard let pendingQuery = pendingQuery.take() else { return nil }
        var results = try connection.finish()
        hasReceived = true
        for (result, confirmed) in zip(results, pendingQuery.confirmed) {
            if result.affectedCount == 0 { throw LeadershipLost() }
            if confirmed.isRepublished {
                logger.notice(
                    "republished all objects",
                    metadata: [
                        "environment": "\(confirmed.environment)", "generation": "\(confirmed.generation)",
                        "epoch": "\(confirmed.epoch)",
                    ])
            }
        }
        for done in pendingQuery.republished {
            logger.notice(
                "republished topic", metadata: ["environment": "\(done.environment)", "topic": "\(done.request.topic)"])
        }
        let ownKinds = pendingQuery.page == nil ? nil : results.popLast()
        let rows = pendingQuery.page == nil ? nil : results.popLast()
        if let environments = results.popLast() {
            try update(environments)
            let writtenCount = pendingQuery.isAwaiting ? try results.last?[0].decode(Int64.self) : nil
            isAwaiting = writtenCount == 0 && environments.count == 0
        }
        guard let request = pendingQuery.page, let rows, let ownKinds else { return nil }
        return try take(rows, of: request, try ownRoutes(ownKinds))
    }

    mutating func update(_ pendingEnvironments: Rows) throws {
        let (tasks, unprepared) = try RelayStore.tasks(pendingEnvironments)
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

    /// Counts the page and prepares its messages; returns `nil` if the environment's progress was reset since the
    /// query.
    ///
    /// - Parameter own: The published kinds that the environment declares, by their numbers.
    mutating func take(
        _ rows: Rows, of request: RelayProgress.Request, _ own: [Int16: Routing.Entry]
    ) throws -> OutgoingPage? {
        guard var current = progress[request.environment], current.awaits(request) else { return nil }
        let hasTimes = if case .changes = request.start { true } else { false }
        let objects = try publishable(rows, in: request.environment, own, isCurrentColumn: hasTimes ? 6 : nil)
        let outgoing = OutgoingPage(
            environment: request.environment, objects: objects, hasTimes: hasTimes, page: current.nextPage)
        let last = rows.count > 0 ? rows[rows.count - 1] : nil
        switch request.start {
        case .changes:
            current.readChanges(through: try last?.value(0), sendCount: objects.count)
        case .objects: current.readObjects(through: try cursor(after: rows), sendCount: objects.count)
        case .topic: current.readTopic(through: try cursor(after: rows), sendCount: objects.count)
        }
        progress[request.environment] = current
        if objects.isEmpty { takeConfirmed(of: request.environment) }
        return outgoing
    }

    /// Returns the start of the next page of objects; `nil` after the last page.
    func cursor(after rows: Rows) throws -> RelayProgress.ObjectCursor? {
        guard rows.count == pageCountMax else { return nil }
        let row = rows[rows.count - 1]
        return RelayProgress.ObjectCursor(realm: try row.value(1), kind: try row.value(2), id: try row.value(3))
    }

    /// Selects the rows to publish, with their topics and realms: those whose kind is published from their realm.
    mutating func publishable(
        _ rows: Rows, in environment: EnvironmentID, _ own: [Int16: Routing.Entry], isCurrentColumn: Int?
    ) throws -> [OutgoingPage.Item] {
        var candidates: [(row: Row, route: Routing.Entry, realm: Int32)] = []
        candidates.reserveCapacity(rows.count)
        for row in rows {
            if let isCurrentColumn, try !row.value(isCurrentColumn, as: Bool.self) { continue }
            let kind: Int16 = try row.value(2)
            guard let route = routing.entry(of: kind) ?? own[kind] else { continue }
            candidates.append((row, route, try row.value(1)))
        }
        let realms = try directory.realms(of: Set(candidates.map(\.realm)), in: environment, on: &connection)
        return candidates.compactMap { row, route, number in
            guard let realm = realms[number] else {
                logger.error("realm with an invalid path not published", metadata: ["realm": "\(number)"])
                return nil
            }
            guard route.includes(realm.realmClass) else { return nil }
            return OutgoingPage.Item(row: row, kind: route.kind, topic: route.topic, path: realm.path)
        }
    }

    /// The broker lost its content. A new epoch has begun; the next relay republishes all objects.
    struct ContentLost: Error, CustomStringConvertible {
        let partition: TopicPartition
        let last: Int64
        let found: Int64
        var description: String {
            "the broker lost its content (\(partition): confirmed offset \(last), now \(found)); "
                + "republishing all objects"
        }
    }

    /// Another relay has moved the position and is the leader now.
    struct LeadershipLost: Error, CustomStringConvertible {
        var description: String { "another relay took over" }
    }
}
