import FoundationEssentials
import Kafka
package import Logging
import Metrics
import Model
import Postgres
import Realms

/// Follows the change log of every environment and publishes the latest state of each changed object of a routed kind,
/// in position order (law 1). Nothing else publishes.
///
/// Several pages are on their way at a time; a position is stored once everything up to it was confirmed by the
/// broker. After a crash it starts again from there: what is published twice does nothing by law 3.
package struct Relay: ~Copyable {
    /// Pointers read at a time.
    private let pageCountMax: Int
    /// Pages of one environment on their way to the broker.
    private static let pagesMax = 8
    /// How often the broker is asked whether its partitions still reach as far as they did.
    private static let lossCheckInterval = Duration.seconds(5)
    /// Pointers removed at a time.
    private static let compactedCountMax = 2_000

    private struct Page {
        let through: Int64
        var unconfirmedCount: Int
        let endsRepublishing: Bool
    }

    private struct Progress {
        var task: RelayTask
        var readPosition: Int64
        var storedPosition: Int64
        var pages: [Int: Page] = [:]
        /// Pages are numbered on when the work begins anew: reports of pages from before find none.
        var firstPage: Int
        var nextPage: Int
        /// Where the republishing of all objects stands.
        var key: (realm: Int32, kind: String, id: UUID)?
    }

    private var connection: Connection
    private var producer: Producer
    private let admin: Admin
    private var directory = RealmDirectory()
    private var progress: [EnvironmentID: Progress] = [:]
    /// The last confirmed offset of each partition.
    private var offsets: [TopicPartition: Int64] = [:]
    private var changedOffsets: [TopicPartition: Int64] = [:]
    private var lockedOpenCount = -1
    private var nextLossCheck = ContinuousClock.now
    private var lastSent: ContinuousClock.Instant?
    /// Environments whose turn to be compacted has come.
    private var compacting: [EnvironmentID] = []
    private var nextCompaction = ContinuousClock.now
    private let published = Metrics.Counter(label: "messaging.client.sent.messages")
    private let topicByKind: [String: Topic]
    private let logger: Logger

    /// - Parameter conninfo: The relay has a connection of its own: its session holds the lock of the active relay.
    package init(
        conninfo: String, brokers: String, properties: [String: String], logger: Logger, pageCountMax: Int = 4_000
    ) throws {
        var connection = try Connection(conninfo)
        try Schema.check(on: &connection)
        let producer = try Producer(brokers: brokers, properties: properties)
        let admin = try Admin(brokers: brokers, properties: properties)
        var topicByKind: [String: Topic] = [:]
        for topic in Topics.all { for kind in topic.kinds { topicByKind[kind.rawValue] = topic } }
        self.connection = connection
        self.producer = producer
        self.admin = admin
        self.logger = logger
        self.pageCountMax = pageCountMax
        self.topicByKind = topicByKind
    }

    /// Publishes what there is, a bounded amount, and waits at most `waitMax` when there is nothing.
    ///
    /// - Returns: Whether this relay is the active one.
    /// - Throws: `PostgresError`, `KafkaError`, or `ContentLost`; make a new relay then.
    package mutating func step(waitMax: Duration) throws -> Bool {
        guard try isActive() else { return false }
        try checkForLoss()
        let rows = try connection.run(RelayStore.news)
        let (tasks, needsPreparing) = try RelayStore.tasks(rows)
        if needsPreparing { try connection.run(RelayStore.prepare) }
        var sentCount = 0
        for task in tasks { sentCount += try publish(task) }
        published.increment(by: sentCount)
        if sentCount > 0 { lastSent = .now }
        let isBusy = sentCount > 0 || progress.values.contains { $0.firstPage < $0.nextPage }
        try confirm(producer.deliveries(waitMax: sentCount > 0 ? .zero : isBusy ? .milliseconds(2) : waitMax))
        return true
    }

    /// Something was published in the last seconds: more is likely to come.
    package var isLively: Bool { lastSent.map { ContinuousClock.now - $0 < .seconds(3) } ?? false }

    /// Why nothing can be published now; `nil` when the broker answers.
    package var problem: String? { producer.isConnected ? nil : producer.lastError?.description }

    /// Removes what nobody needs any more, one bounded step at a call, of each environment once in `interval`.
    ///
    /// Only the active relay calls it: the floor must not pass what is published.
    package mutating func compact(keep: Duration, interval: Duration) throws {
        guard ContinuousClock.now >= nextCompaction else { return }
        guard let environment = compacting.first else {
            for row in try connection.run("SELECT id FROM realm.environment ORDER BY id") {
                compacting.append(EnvironmentID(rawValue: try row.value(0)))
            }
            nextCompaction = compacting.isEmpty ? .now + interval : .now
            return
        }
        let count = try Compaction.step(
            environment, keep: keep, countMax: Self.compactedCountMax, on: &connection)
        if count == 0 { compacting.removeFirst() }
        // Between two steps there is time to publish.
        nextCompaction = .now + (compacting.isEmpty ? interval : .milliseconds(50))
    }

    /// One session holds an advisory lock; it is gone with the connection.
    private mutating func isActive() throws -> Bool {
        if lockedOpenCount == connection.openCount { return true }
        let isLocked: Bool = try connection.run(RelayStore.tryLock())[0].value(0)
        guard isLocked else { return false }
        lockedOpenCount = connection.openCount
        progress = [:]
        offsets = [:]
        for row in try connection.run(RelayStore.offsets) {
            offsets[TopicPartition(topic: try row.value(0), partition: try row.value(1))] = try row.value(2)
        }
        nextLossCheck = .now
        logger.notice("this relay is the active one")
        return true
    }

    // MARK: Publishing

    private mutating func publish(_ task: RelayTask) throws -> Int {
        var current = progress[task.environment] ?? Self.start(task, page: 0)
        if current.task.epoch != task.epoch || current.task.isRepublishing != task.isRepublishing {
            current = Self.start(task, page: current.nextPage)
        }
        guard current.nextPage - current.firstPage < Self.pagesMax else { return 0 }
        let outlet = Outlet(
            environment: task.environment, generation: task.generation, epoch: task.epoch)
        let count =
            current.task.isRepublishing
            ? try publishObjects(&current, outlet) : try publishChanges(&current, task, outlet)
        progress[task.environment] = current
        return count
    }

    private static func start(_ task: RelayTask, page: Int) -> Progress {
        var start = Progress(
            task: task, readPosition: task.relayedPosition, storedPosition: task.relayedPosition, firstPage: page,
            nextPage: page)
        if task.isRepublishing { start.key = (Int32.min, "", .zero) }
        return start
    }

    /// The next page of the change log.
    private mutating func publishChanges(_ current: inout Progress, _ task: RelayTask, _ outlet: Outlet) throws -> Int {
        guard current.readPosition < task.counterPosition else { return 0 }
        let rows = try connection.run(
            Feed.changes(
                in: task.environment, after: current.readPosition, kinds: Topics.all.flatMap(\.kinds),
                countMax: pageCountMax))
        // Reserved positions that nothing was written at leave no pointer: an empty page reaches the counter that was
        // read.
        let through: Int64 = rows.count == 0 ? task.counterPosition : try rows[rows.count - 1].value(0)
        let count = try send(rows, outlet, page: current.nextPage, timeColumn: 8, traceColumn: 7, currentColumn: 6)
        current.pages[current.nextPage] = Page(through: through, unconfirmedCount: count, endsRepublishing: false)
        current.nextPage += 1
        current.readPosition = through
        if count == 0 { try finishPages(of: &current) }
        return count
    }

    /// The next page of all routed objects, after the broker's content was lost.
    private mutating func publishObjects(_ current: inout Progress, _ outlet: Outlet) throws -> Int {
        guard let key = current.key else { return 0 }
        let rows = try connection.run(
            RelayStore.objects(
                in: current.task.environment, kinds: Array(topicByKind.keys), after: key, countMax: pageCountMax))
        let count = try send(
            rows, outlet, page: current.nextPage, timeColumn: nil, traceColumn: nil, currentColumn: nil)
        let isLast = rows.count < pageCountMax
        if let last = rows.count > 0 ? rows[rows.count - 1] : nil {
            current.key = isLast ? nil : (try last.value(1), try last.value(2), try last.value(3))
        } else {
            current.key = nil
        }
        // What changed since the task was read follows from the change log, from the counter as it was then.
        current.pages[current.nextPage] = Page(
            through: current.task.counterPosition, unconfirmedCount: count, endsRepublishing: isLast)
        current.nextPage += 1
        if count == 0 { try finishPages(of: &current) }
        return count
    }

    private mutating func send(
        _ rows: Rows, _ outlet: Outlet, page: Int, timeColumn: Int?, traceColumn: Int?, currentColumn: Int?
    ) throws -> Int {
        var wanted: [(row: Row, realm: Int32, topic: Topic, kind: Kind)] = []
        for row in rows {
            if let currentColumn, try !row.value(currentColumn, as: Bool.self) { continue }
            let kindName: String = try row.value(2)
            guard let topic = topicByKind[kindName], let kind = Kind(rawValue: kindName) else { continue }
            wanted.append((row, try row.value(1), topic, kind))
        }
        let paths = try directory.paths(of: Set(wanted.map(\.realm)), in: outlet.environment, on: &connection)
        let now = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000))
        let tag = Self.tag(outlet.environment, page)
        var count = 0
        for (row, realm, topic, kind) in wanted {
            guard let path = paths[realm] else {
                logger.error("a realm without a usable path is not published", metadata: ["realm": "\(realm)"])
                continue
            }
            let changedAt = try timeColumn.map { column in try row.value(column, as: PostgresTime.self) }
            let object = PublishedObject(
                realm: path, kind: kind, id: try row.value(3), position: try row.value(0),
                editPosition: try row.value(4),
                time: changedAt.map { Timestamp(millisecondsSinceEpoch: $0.millisecondsSince1970) } ?? now,
                traceparent: try traceColumn.flatMap { column in try row.optional(column) })
            try unsafe row.withJSON(5) { json in
                try unsafe outlet.send(object, to: topic, json: json, tag: tag, through: &producer)
            }
            count += 1
        }
        return count
    }

    // MARK: Confirming

    /// Environment and page in one number, so that a report finds its page.
    private static func tag(_ environment: EnvironmentID, _ page: Int) -> UInt64 {
        UInt64(UInt32(bitPattern: environment.rawValue)) << 32 | UInt64(UInt32(truncatingIfNeeded: page))
    }

    private mutating func confirm(_ deliveries: [Delivery]) throws {
        if deliveries.isEmpty { return }
        var confirmed: [UInt64: Int] = [:]
        for delivery in deliveries {
            if let error = delivery.error { throw error }
            confirmed[delivery.tag, default: 0] += 1
            guard let offset = delivery.offset, offset >= 0 else { continue }
            let partition = TopicPartition(topic: delivery.topic, partition: delivery.partition)
            if let last = offsets[partition], offset <= last {
                try contentWasLost(partition, last: last, found: offset)
            }
            offsets[partition] = offset
            changedOffsets[partition] = offset
        }
        for (tag, count) in confirmed {
            let environment = EnvironmentID(rawValue: Int32(bitPattern: UInt32(truncatingIfNeeded: tag >> 32)))
            guard var current = progress[environment] else { continue }
            current.pages[Int(UInt32(truncatingIfNeeded: tag))]?.unconfirmedCount -= count
            try finishPages(of: &current)
            progress[environment] = current
        }
    }

    /// Stores how far everything was confirmed without a gap.
    private mutating func finishPages(of current: inout Progress) throws {
        var reached: Int64?
        var isRepublished = false
        while let page = current.pages[current.firstPage], page.unconfirmedCount == 0 {
            current.pages[current.firstPage] = nil
            current.firstPage += 1
            reached = page.through
            isRepublished = page.endsRepublishing
        }
        guard let reached, isRepublished || !current.task.isRepublishing else { return }
        let (environment, epoch) = (current.task.environment, current.task.epoch)
        var statements = [
            isRepublished
                ? RelayStore.republished(environment, position: reached, epoch: epoch)
                : RelayStore.advance(environment, from: current.storedPosition, to: reached, epoch: epoch)
        ]
        current.storedPosition = reached
        if !changedOffsets.isEmpty {
            statements.append(RelayStore.store(changedOffsets))
            changedOffsets = [:]
        }
        let answers = try connection.run(statements)
        if answers[0].affectedCount == 0 { throw TakenOver() }
        if isRepublished {
            logger.notice(
                "published every routed object again",
                metadata: ["environment": "\(environment)", "epoch": "\(epoch)"])
        }
    }

    // MARK: Loss

    /// A broker whose partition ends below what it confirmed has lost its content.
    private mutating func checkForLoss() throws {
        guard ContinuousClock.now >= nextLossCheck else { return }
        nextLossCheck = .now + Self.lossCheckInterval
        for (partition, last) in offsets {
            let end = try admin.watermarks(partition).upperBound
            if end <= last { try contentWasLost(partition, last: last, found: end) }
        }
    }

    private mutating func contentWasLost(_ partition: TopicPartition, last: Int64, found: Int64) throws {
        try connection.run(RelayStore.newEpoch)
        throw ContentLost(partition: partition, last: last, found: found)
    }

    /// The broker lost its content. A new epoch has begun; the next relay publishes every routed object again.
    package struct ContentLost: Error, CustomStringConvertible {
        let partition: TopicPartition
        let last: Int64
        let found: Int64
        package var description: String {
            "the broker lost its content (\(partition): confirmed up to \(last), now \(found)); publishing all again"
        }
    }

    /// Another relay has moved the position: it is the active one now.
    package struct TakenOver: Error, CustomStringConvertible {
        package var description: String { "another relay took over" }
    }
}
