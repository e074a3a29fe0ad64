import Kafka
import Logging
import Model
import Postgres

/// What a worker does with messages before it looks at what they mean: it notices that transport was lost, and drops
/// messages of another generation.
struct Intake {
    private let group: String
    private let logger: Logger
    /// Which epoch of each partition was begun from its beginning.
    private var epochs: [TopicPartition: Int64] = [:]
    /// The message behind the last gap that was answered, so that a gap that stays is answered once.
    private var answeredGaps: [TopicPartition: Int64] = [:]
    private var generations: [EnvironmentID: Int64] = [:]
    private var realms = KnownRealms()
    /// Partitions that went to other workers so far.
    private(set) var takenAwayCount = 0
    /// The last event's: events come in runs.
    private var run = Run()

    private struct Run {
        var partition: TopicPartition?
        var epoch: Int64 = 0
        var environment: EnvironmentID?
        var generation: Int64 = 0
    }

    init(group: String, logger: Logger) {
        self.group = group
        self.logger = logger
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
        try loadEpochs(of: consumer.takeAssignmentChanges(), connection: &connection)
        var admitted = Admitted()
        var restarted: Set<TopicPartition> = []
        admitted.events.reserveCapacity(messages.count)
        run = Run()
        for message in messages where !restarted.contains(message.topicPartition) {
            let event: Event
            do {
                event = try Event(message, &realms)
            } catch {
                admitted.poison.append((message, error.description))
                continue
            }
            if isLost(event) {
                try restart(event, consumer: &consumer, connection: &connection)
                restarted.insert(message.topicPartition)
                admitted.events.removeAll { $0.message.topicPartition == message.topicPartition }
            } else if try isCurrent(event.generation, of: event.environment, connection: &connection) {
                admitted.events.append(event)
            } else {
                admitted.dropped.append(message)
            }
        }
        return admitted
    }

    /// A newer epoch, or an offset that skipped: what lay between may have been lost on the way.
    private mutating func isLost(_ event: Event) -> Bool {
        let partition = event.message.topicPartition
        if run.partition != partition {
            run.partition = partition
            run.epoch = epochs[partition] ?? 0
        }
        if event.epoch > run.epoch { return true }
        return event.message.skippedBefore && answeredGaps[partition] != event.message.offset
    }

    /// Reads the partition from its beginning. The committed offset goes first: after a crash in between, the worker
    /// begins at the beginning too.
    private mutating func restart(
        _ event: Event, consumer: inout Consumer, connection: inout Connection
    ) throws {
        let partition = event.message.topicPartition
        guard consumer.assignment.contains(partition) else { return }
        // A partition this group never read begins the same way, and that is no news.
        logger.log(
            level: epochs[partition] == nil ? .debug : .notice,
            "reading the partition from its beginning, transport may have been lost",
            metadata: ["topic": "\(partition.topic)", "partition": "\(partition.partition)", "epoch": "\(event.epoch)"])
        try consumer.commitBeginning(partition)
        try connection.run(
            """
            INSERT INTO pipeline.progress AS p (group_name, topic, partition, epoch)
            VALUES (\(group), \(partition.topic), \(partition.partition), \(event.epoch))
            ON CONFLICT (group_name, topic, partition) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
            """)
        try consumer.seekToBeginning(partition)
        epochs[partition] = max(event.epoch, epochs[partition] ?? 0)
        run.partition = nil
        if event.message.skippedBefore { answeredGaps[partition] = event.message.offset }
    }

    private mutating func loadEpochs(of changes: [AssignmentChange], connection: inout Connection) throws {
        if changes.isEmpty { return }
        for change in changes {
            epochs[change.partition] = nil
            if case .assigned = change { continue }
            takenAwayCount += 1
        }
        let rows = try connection.run(
            "SELECT topic, partition, epoch FROM pipeline.progress WHERE group_name = \(group)")
        for row in rows {
            let partition = TopicPartition(topic: try row.value(0), partition: try row.value(1))
            epochs[partition] = max(try row.value(2), epochs[partition] ?? 0)
        }
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
        for row in try connection.run("SELECT id, generation FROM realm.environment") {
            generations[EnvironmentID(rawValue: try row.value(0))] = try row.value(1)
        }
        return generations[environment] == generation
    }
}
