import Kafka
import Logging
import Metrics
import Model
import Postgres

/// What a worker does with messages before it looks at what they mean: it notices that transport was lost, for the
/// broker or for this group, and drops messages of another generation.
struct EventReader {
    let group: String
    let logger: Logger
    let expired: Metrics.Counter
    /// Partitions that came, and of which it is still to be found out how far the group is.
    var begun: Set<TopicPartition> = []
    var nextBeginning = ContinuousClock.now
    static let beginningInterval = Duration.seconds(10)
    /// When it is looked whether there is a new epoch.
    var nextEpoch = ContinuousClock.now
    static let epochInterval = Duration.seconds(5)
    /// When it is looked whether every partition that has something delivers it.
    var nextDeliveryCheck = ContinuousClock.now
    var deliveryInterval = Duration.seconds(30)
    /// Which epoch of each partition was begun from its beginning.
    var epochs: [TopicPartition: Int64] = [:]
    var gaps = Gaps()
    /// Partitions that are read from their beginning because of a new epoch, with the offset they begin at now.
    var reread: [TopicPartition: Int64] = [:]
    /// The epochs of partitions that were begun anew, until that is committed and recorded.
    var unrecorded: [TopicPartition: Int64] = [:]
    var committedAnew: Set<TopicPartition> = []
    /// Partitions of which the group had committed nothing when they came.
    var fresh: Set<TopicPartition> = []
    private var generations: [EnvironmentID: Int64] = [:]
    private var realms = KnownRealms()
    /// Partitions that went to other workers so far.
    var takenAwayCount = 0
    /// The last event's: events come in runs.
    var run = Run()

    struct Run {
        var partition: TopicPartition?
        var epoch: Int64 = 0
        var environment: EnvironmentID?
        var generation: Int64 = 0
    }

    init(group: String, logger: Logger) {
        self.group = group
        self.logger = logger
        expired = Metrics.Counter(
            label: "fieldpost.expired.messages", dimensions: [("messaging.consumer.group.name", group)])
    }

    struct Admitted {
        var events: [Event] = []
        /// Messages nothing can be made of, with the reason.
        var poison: [(message: Message, reason: String)] = []
        /// Messages that concern nobody: a generation that is over.
        var dropped: [Message] = []
    }

    mutating func admit(
        _ messages: [Message], consumer: inout Consumer, connection: inout Connection
    ) throws -> Admitted {
        if !begun.isEmpty {
            let required = begun.intersection(messages.map(\.topicPartition))
            if !required.isEmpty { try begin(&consumer, &connection, required: required) }
        }
        var admitted = Admitted()
        // Restarted together after the others: where they begin is one question, however many they are.
        var restarted: [TopicPartition: Int64] = [:]
        var readAgain: [Message] = []
        admitted.events.reserveCapacity(messages.count)
        run = Run()
        for message in messages where restarted[message.topicPartition] == nil {
            let partition = message.topicPartition
            let event: Event
            do {
                if try isOutOfOrder(message, &consumer, &connection) {
                    restarted[partition] = epochs[partition] ?? 0
                    readAgain.append(message)
                    admitted.events.removeAll { $0.message.topicPartition == partition }
                    continue
                }
                event = try Event(message, &realms)
            } catch let malformed as Event.Malformed {
                admitted.poison.append((message, malformed.description))
                continue
            }
            if isNews(event) {
                restarted[partition] = event.epoch
                admitted.events.removeAll { $0.message.topicPartition == partition }
                continue
            }
            if !reread.isEmpty { try checkBeginning(event, &connection) }
            if try isCurrent(event.generation, of: event.environment, connection: &connection) {
                admitted.events.append(event)
            } else {
                admitted.dropped.append(message)
            }
        }
        if let failure = try restart(restarted, consumer: &consumer, connection: &connection) { throw failure }
        for message in readAgain {
            gaps.wasReadAgain(before: message.offset, expected: message.expectedOffset, in: message.topicPartition)
        }
        return admitted
    }

    /// Asks for what is missing before a message when it was removed.
    ///
    /// - Returns: Whether the partition is to be read again.
    private mutating func isOutOfOrder(
        _ message: Message, _ consumer: inout Consumer, _ connection: inout Connection
    ) throws -> Bool {
        guard message.skippedBefore else { return false }
        let (partition, offset) = (message.topicPartition, message.offset)
        let gap = try gaps.gap(before: offset, expected: message.expectedOffset, in: partition) {
            () throws(KafkaError) in try consumer.first(of: partition)
        }
        switch gap {
        case nil: return false
        case .unexplained: return true
        case .removed(let missed):
            try ask(for: [missed], &connection)
            gaps.wasAnswered(before: offset, in: partition)
            return false
        }
    }

    /// A newer epoch: what lay before may have been lost by the broker.
    private mutating func isNews(_ event: Event) -> Bool {
        let partition = event.message.topicPartition
        if run.partition != partition {
            run.partition = partition
            run.epoch = epochs[partition] ?? 0
        }
        return event.epoch > run.epoch
    }

    /// The first message of a partition that is read again. When it is of the new epoch already, others of that epoch
    /// may have been before it, and were removed.
    private mutating func checkBeginning(_ event: Event, _ connection: inout Connection) throws {
        let partition = event.message.topicPartition
        guard let first = reread[partition] else { return }
        if event.epoch >= epochs[partition] ?? 0 {
            try ask(for: [MissedOffsets(partition: partition, offsets: 0..<first)], &connection)
        }
        reread[partition] = nil
    }

    /// Asks PostgreSQL for a generation not known yet only: generations grow, so one below the known one is over.
    mutating func isCurrent(
        _ generation: Int64, of environment: EnvironmentID, connection: inout Connection
    ) throws -> Bool {
        if run.environment == environment, run.generation == generation { return true }
        if let known = generations[environment], generation <= known {
            guard generation == known else { return false }
            run.environment = environment
            run.generation = generation
            return true
        }
        let rows = try connection.run("SELECT id, generation FROM realm.environment")
        for (id, current) in try rows.decode(EnvironmentID.self, Int64.self) { generations[id] = current }
        return generations[environment] == generation
    }
}
