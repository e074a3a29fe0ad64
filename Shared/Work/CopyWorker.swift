import Essentials
import FoundationEssentials
package import Kafka
package import Logging
import Metrics
package import Model
import Postgres
import Realms

/// A worker that keeps 1:1 copies of the objects of a topic in other realms, at the speed of PostgreSQL.
///
/// A copy carries its source's position and takes only newer ones (law 3), so nothing is loaded or decided before, and
/// the fields travel from Kafka to PostgreSQL as the bytes they are. While PostgreSQL writes one batch the next is
/// prepared: events are folded to the newest per object, sorted by key, and put into binary arrays.
package struct CopyWorker: ~Copyable {
    /// Where the copy of an object goes, given its realm; `nil`: it is not copied.
    package typealias Route = @Sendable (_ realm: RealmPath) -> RealmPath?

    private struct Item {
        let environment: Int32
        let realm: Int32
        let kind: Kind
        let high: UInt64
        let low: UInt64
        let position: Int64
        let index: Int32

        /// By key as PostgreSQL's index has it, the newest of an object last.
        static func < (a: Item, b: Item) -> Bool {
            if a.environment != b.environment { return a.environment < b.environment }
            if a.realm != b.realm { return a.realm < b.realm }
            if a.kind != b.kind { return a.kind.number < b.kind.number }
            if a.high != b.high { return a.high < b.high }
            if a.low != b.low { return a.low < b.low }
            return a.position < b.position
        }

        func isSameObject(as other: Item) -> Bool {
            low == other.low && high == other.high && realm == other.realm && kind == other.kind
                && environment == other.environment
        }
    }

    /// A transaction on its way: one environment's copies, or several after each other.
    private struct Sent {
        let batches: [CopyBatch]
        let messages: [Message]
    }

    private struct Place: Hashable {
        let environment: EnvironmentID
        let realm: RealmPath
    }

    /// Messages taken at a time.
    private let batchCountMax: Int
    private let group: String
    private let route: Route
    private let logger: Logger
    private var consumer: Consumer
    private var connection: Connection
    private var reader: EventReader
    private var directory = RealmDirectory()
    private var targets: [Place: Int32?] = [:]
    private var sent: Sent?
    private let consumed: Metrics.Counter

    package init(
        at place: WorkerPlace, batchCountMax: Int = 4_000, logger: Logger, route: @escaping Route
    ) throws {
        var connection = try Connection(place.conninfo, check: Lineage.check)
        try Schema.check(on: &connection)
        let consumer = try Consumer(
            brokers: place.brokers, group: place.group, topics: place.topics, properties: place.properties)
        self.batchCountMax = batchCountMax
        group = place.group
        self.route = route
        self.logger = logger
        self.consumer = consumer
        self.connection = connection
        reader = EventReader(group: place.group, logger: logger)
        consumed = Metrics.Counter(
            label: "messaging.client.consumed.messages", dimensions: [("messaging.consumer.group.name", place.group)])
    }

    package var wakeup: Wakeup { consumer.wakeup }

    /// Prepares one batch, waits for the one before, and sends this one.
    ///
    /// - Returns: How many messages were taken, and how many are finished: written, or known to be done already.
    /// - Throws: `PostgresError` or `KafkaError`. Whether a batch on its way was committed need not be known: its
    ///   messages come again to the next worker, and do nothing a second time.
    package mutating func step(waitMax: Duration) throws -> (taken: Int, finished: Int) {
        let messages = try consumer.nextBatch(countMax: batchCountMax, waitMax: sent == nil ? waitMax : .zero)
        try reader.follow(&consumer, &connection)
        let admitted =
            messages.isEmpty
            ? EventReader.Admitted() : try reader.admit(messages, consumer: &consumer, connection: &connection)
        let (batches, refused) = try prepare(admitted.events)
        let finishedCount = try finish()
        consumed.increment(by: messages.count)
        if !admitted.poison.isEmpty {
            try connection.run(
                admitted.poison.map { ParkedKeys.poison($0.message, reason: $0.reason, group: group) })
            consumer.finish(admitted.poison.map(\.message))
        }
        // They are finished with the others of their batch.
        for (message, reason) in refused {
            let parked = park(message, reason: reason)
            try connection.run(parked)
        }
        consumer.finish(admitted.dropped)
        if !batches.isEmpty {
            try connection.start(batches.flatMap(\.statements))
        }
        if !messages.isEmpty { sent = Sent(batches: batches, messages: admitted.events.map(\.message)) }
        return (messages.count, finishedCount)
    }

    /// Waits for the batch on its way and stores its offsets.
    @discardableResult
    package mutating func finish() throws -> Int {
        guard let sent = sent.take() else { return 0 }
        do {
            try connection.finish()
        } catch {
            guard error.isDataError else { throw error }
            try writeApart(sent)
        }
        consumer.finish(sent.messages)
        return sent.messages.count
    }

    // MARK: Preparing

    /// - Returns: Also the events whose fields are no JSON.
    private mutating func prepare(
        _ events: [Event]
    ) throws -> (batches: [CopyBatch], refused: [(message: Message, reason: String)]) {
        if events.isEmpty { return ([], []) }
        var items: [Item]
        if let known = self.items(of: events) {
            items = known
        } else {
            try findTargets(of: events)
            items = self.items(of: events) ?? []
        }
        items.sort(by: <)
        var batches: [CopyBatch] = []
        var refused: [(message: Message, reason: String)] = []
        for (offset, item) in items.enumerated() {
            if offset + 1 < items.count, item.isSameObject(as: items[offset + 1]) { continue }
            let environment = EnvironmentID(rawValue: item.environment)
            if batches.last?.environment != environment {
                batches.append(CopyBatch(environment: environment, fieldsCapacity: events.count * 520))
            }
            let event = events[Int(item.index)]
            let key = ObjectKey(realm: item.realm, kind: item.kind, id: event.id)
            do throws(JSONProblem) {
                try Self.append(event.message, key, item.position, to: &batches[batches.count - 1])
            } catch {
                refused.append((event.message, error.description))
            }
        }
        return (batches, refused)
    }

    /// The events that are copied; `nil` while the target of one is not known.
    private func items(of events: [Event]) -> [Item]? {
        var items: [Item] = []
        items.reserveCapacity(events.count)
        for (index, event) in events.enumerated() {
            guard let target = targets[Place(environment: event.environment, realm: event.realm)] else { return nil }
            guard let realm = target else { continue }
            let (high, low) = event.id.halves
            items.append(
                Item(
                    environment: event.environment.rawValue, realm: realm, kind: event.kind, high: high, low: low,
                    position: event.position, index: Int32(index)))
        }
        return items
    }

    private static func append(
        _ message: Message, _ key: ObjectKey, _ position: Int64, to batch: inout CopyBatch
    ) throws(JSONProblem) {
        if message.isTombstone {
            try unsafe batch.append(key, source: position, json: nil)
        } else {
            try message.withValue { value throws(JSONProblem) in
                try unsafe value.withUnsafeBytes { json throws(JSONProblem) in
                    try unsafe batch.append(key, source: position, json: json)
                }
            }
        }
    }

    /// Finds the realms of the copies; those not known yet in one round trip.
    private mutating func findTargets(of events: [Event]) throws {
        if targets.count > 500_000 { targets = [:] }
        var unknown: [EnvironmentID: [RealmPath: RealmPath]] = [:]
        for event in events {
            let place = Place(environment: event.environment, realm: event.realm)
            guard targets[place] == nil else { continue }
            if let path = route(event.realm) {
                unknown[event.environment, default: [:]][path] = event.realm
            } else {
                targets[place] = .some(nil)
            }
        }
        for (environment, paths) in unknown {
            let ids = try directory.ids(of: paths.keys, in: environment, create: true, on: &connection)
            for (path, realm) in paths {
                targets[Place(environment: environment, realm: realm)] = .some(ids[path])
            }
        }
    }

    // MARK: Refused data

    /// One of the batch is bad: each copy is written by itself, and the bad ones are parked dead.
    private mutating func writeApart(_ sent: Sent) throws {
        var realms = KnownRealms()
        for message in sent.messages {
            let event = try Event(message, &realms)
            for batch in try prepare([event]).batches { try writeAlone(batch, message) }
        }
    }

    private mutating func writeAlone(_ batch: CopyBatch, _ message: Message) throws {
        do {
            try connection.run(batch.statements)
        } catch {
            guard error.isDataError else { throw error }
            let parked = park(message, reason: error.message)
            try connection.run(parked)
        }
    }

    private func park(_ message: Message, reason: String) -> Statement {
        logger.error("poison", metadata: ["offset": "\(message.offset)", "reason": "\(reason)"])
        return ParkedKeys.poison(message, reason: reason, group: group)
    }
}
