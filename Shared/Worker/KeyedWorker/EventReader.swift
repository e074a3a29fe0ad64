import Kafka
import Logging
import Metrics
import Model
import Postgres

/// Filters messages before they are decided: detects lost messages, of the broker or of this group, and drops messages
/// of an older generation.
struct EventReader {
    let group: String
    let logger: Logger
    let expiredMessages: Metrics.Counter
    /// Assigned partitions whose start offset is not resolved yet.
    var pendingStarts: Set<TopicPartition> = []
    var nextStartCheck = ContinuousClock.now
    static let startCheckInterval = Duration.seconds(10)
    /// Time of the next query for a new epoch.
    var nextEpoch = ContinuousClock.now
    static let epochInterval = Duration.seconds(5)
    /// Time of the next check that every partition with messages delivers them.
    var nextDeliveryCheck = ContinuousClock.now
    var deliveryInterval = Duration.seconds(30)
    /// The epoch in which each partition was read from its beginning.
    var epochs: [TopicPartition: Int64] = [:]
    var gaps = OffsetGaps()
    /// First offsets of partitions that are read from their beginning because of a new epoch.
    var rereadFirsts: [TopicPartition: Int64] = [:]
    /// Epochs of partitions that are read from their beginning, until the offset is committed and the epoch is
    /// recorded.
    var unrecordedEpochs: [TopicPartition: Int64] = [:]
    var recommitted: Set<TopicPartition> = []
    /// Partitions that had no committed offset when they were assigned.
    var fresh: Set<TopicPartition> = []
    private var generations: [EnvironmentID: Int64] = [:]
    private var realms = RealmPathCache()
    /// Number of partitions revoked so far.
    var revokedCount = 0
    /// Values of the last event: consecutive events mostly have the same.
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
        expiredMessages = Metrics.Counter(
            label: "fieldpost.expired.messages", dimensions: [("messaging.consumer.group.name", group)])
    }

    struct AdmissionResult {
        var events: [Event] = []
        /// Unreadable messages, with the reason.
        var poison: [(message: Message, reason: String)] = []
        /// Messages of a generation that has ended.
        var dropped: [Message] = []
    }

    mutating func admit(
        _ messages: [Message], consumer: inout Consumer, connection: inout Connection
    ) throws -> AdmissionResult {
        if !pendingStarts.isEmpty {
            let required = pendingStarts.intersection(messages.map(\.topicPartition))
            if !required.isEmpty { try resolveStarts(&consumer, &connection, required: required) }
        }
        var admitted = AdmissionResult()
        // Restarted together after the others: their first offsets need one query.
        var restarted: [TopicPartition: Int64] = [:]
        var rereadMessages: [Message] = []
        admitted.events.reserveCapacity(messages.count)
        run = Run()
        for message in messages where restarted[message.topicPartition] == nil {
            let partition = message.topicPartition
            let event: Event
            do {
                if try isOutOfOrder(message, &consumer, &connection) {
                    restarted[partition] = epochs[partition] ?? 0
                    rereadMessages.append(message)
                    admitted.events.removeAll { $0.message.topicPartition == partition }
                    continue
                }
                event = try Event(message, &realms)
            } catch let malformed as Event.Malformed {
                admitted.poison.append((message, malformed.description))
                continue
            }
            if startsNewEpoch(event) {
                restarted[partition] = event.epoch
                admitted.events.removeAll { $0.message.topicPartition == partition }
                continue
            }
            if !rereadFirsts.isEmpty { try checkFirstEvent(event, &connection) }
            if try isCurrent(event.generation, of: event.environment, connection: &connection) {
                admitted.events.append(event)
            } else {
                admitted.dropped.append(message)
            }
        }
        if let failure = try restart(restarted, consumer: &consumer, connection: &connection) { throw failure }
        for message in rereadMessages {
            gaps.didReread(before: message.offset, expected: message.expectedOffset, in: message.topicPartition)
        }
        return admitted
    }

    /// Requests republication of messages that were removed before this one.
    ///
    /// - Returns: Whether the partition has to be read again.
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
        case .removed(let expired):
            try requestRepublication(of: [expired], &connection)
            gaps.resolve(before: offset, in: partition)
            return false
        }
    }

    /// Whether the event starts a newer epoch: the broker may have lost earlier messages.
    private mutating func startsNewEpoch(_ event: Event) -> Bool {
        let partition = event.message.topicPartition
        if run.partition != partition {
            run.partition = partition
            run.epoch = epochs[partition] ?? 0
        }
        return event.epoch > run.epoch
    }

    /// Checks the first message of a partition that is read again. If it belongs to the new epoch, earlier messages of
    /// that epoch may have been removed.
    private mutating func checkFirstEvent(_ event: Event, _ connection: inout Connection) throws {
        let partition = event.message.topicPartition
        guard let first = rereadFirsts[partition] else { return }
        if event.epoch >= epochs[partition] ?? 0 {
            try requestRepublication(of: [ExpiredOffsets(partition: partition, offsets: 0..<first)], &connection)
        }
        rereadFirsts[partition] = nil
    }

    /// Queries PostgreSQL only for a generation above the cached one: generations grow, so one below it has ended.
    mutating func isCurrent(
        _ generation: Int64, of environment: EnvironmentID, connection: inout Connection
    ) throws -> Bool {
        if run.environment == environment, run.generation == generation { return true }
        if let cached = generations[environment], generation <= cached {
            guard generation == cached else { return false }
            run.environment = environment
            run.generation = generation
            return true
        }
        let rows = try connection.run("SELECT id, generation FROM realm.environment")
        for (id, current) in try rows.decode(EnvironmentID.self, Int64.self) { generations[id] = current }
        return generations[environment] == generation
    }
}
