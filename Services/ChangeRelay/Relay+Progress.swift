import Kafka
import Postgres

/// Progress of the relay. A relay without progress is not ready, and releases leadership.
extension Relay {
    /// Time without a response of the brokers after which the leader releases the lock: another relay may reach them.
    static let brokersUnavailableMax = Duration.seconds(15)
    /// Maximum time without a confirmation of sent messages, after which the relay is not ready.
    static let unconfirmedMax = Duration.seconds(5)

    /// Whether this relay holds the leader's lock.
    var isLeader: Bool { lockedOpenCount == connection.openCount }

    /// Whether the brokers responded to the last poll. Otherwise a relay does not become the leader.
    var reachesBrokers: Bool { brokersRespondedAt != nil && brokersFailure == nil }

    /// The reason why nothing can be published; `nil` if the brokers respond and confirm messages. A missing topic that
    /// one environment declares is only logged.
    var problem: String? {
        if let brokersFailure { return brokersFailure.description }
        if brokersRespondedAt == nil { return "the brokers have not responded yet" }
        guard isLeader else { return nil }
        return producer.connectionProblem
            ?? blockedTopics.filter { !ownTopics.contains($0.key) }.min { $0.key < $1.key }.map {
                "topic \($0.key): \($0.value)"
            } ?? stall
    }

    /// The reason why the leader makes no progress; a new leader must make some before it is ready.
    private var stall: String? {
        guard hasReceived else { return "no data was read from PostgreSQL yet" }
        guard let oldest = sentAt.values.min() else { return nil }
        guard let lastConfirmed else { return "the brokers have not confirmed any message yet" }
        let quiet = ContinuousClock.now - max(oldest, lastConfirmed)
        guard quiet > Self.unconfirmedMax else { return nil }
        return "the brokers have not confirmed any message for \(quiet.components.seconds) s"
    }

    /// Whether this relay should publish now.
    ///
    /// - Throws: `BrokersUnavailable`, by which the leader releases the lock.
    mutating func mayPublish() throws -> Bool {
        if reachesBrokers { return try acquireLeadership() }
        if isLeader {
            guard let answered = brokersRespondedAt, .now - answered > Self.brokersUnavailableMax else { return true }
            throw BrokersUnavailable(reason: problem ?? "")
        }
        // Keeps the session alive: PostgreSQL ends idle sessions.
        try connection.run("SELECT")
        return false
    }

    /// Whether the timeout is limited to the partition's leader: since the message was sent, brokers have responded and
    /// confirmed others.
    func isLimitedToPartition(_ delivery: Delivery) -> Bool {
        guard let sent = sentAt[delivery.tag], let lastConfirmed, let brokersRespondedAt else { return false }
        return min(lastConfirmed, brokersRespondedAt) >= sent
    }

    /// The error of a leader that reaches no broker.
    struct BrokersUnavailable: Error, CustomStringConvertible {
        let reason: String
        var description: String { "brokers unavailable, releasing leadership: \(reason)" }
    }
}
