import Kafka
import Postgres

/// Progress of the relay: one that makes none is not ready, and releases leadership.
extension Relay {
    /// Time without an answer of the brokers after which the leader releases the lock: another relay may reach them.
    static let brokersSilentMax = Duration.seconds(15)
    /// Maximum time without a confirmation of sent messages; beyond it the relay is not ready.
    static let unconfirmedMax = Duration.seconds(5)

    /// Whether this relay holds the leader's lock.
    var isLeader: Bool { lockedOpenCount == connection.openCount }

    /// Whether the brokers answered the last time. A relay without an answer does not become the leader.
    var reachesBrokers: Bool { brokersAnsweredAt != nil && brokersFailure == nil }

    /// Why nothing can be published now; `nil` when the brokers answer, and confirm what is sent.
    var problem: String? {
        if let brokersFailure { return brokersFailure.description }
        if brokersAnsweredAt == nil { return "the brokers have not answered yet" }
        guard isLeader else { return nil }
        return producer.connectionProblem
            ?? blockedTopics.min { $0.key < $1.key }.map { "topic \($0.key): \($0.value)" } ?? stall
    }

    /// Why the leader makes no progress; a relay that has just become the leader has to make some first.
    private var stall: String? {
        guard hasReceived else { return "nothing was read from PostgreSQL yet" }
        guard let oldest = sentAt.values.min() else { return nil }
        guard let lastConfirmed else { return "the brokers have confirmed nothing yet" }
        let quiet = ContinuousClock.now - max(oldest, lastConfirmed)
        guard quiet > Self.unconfirmedMax else { return nil }
        return "the brokers have confirmed nothing for \(quiet.components.seconds) s"
    }

    /// Whether this relay is to publish now.
    ///
    /// - Throws: `BrokersSilent`, by which the leader releases the lock.
    mutating func mayPublish() throws -> Bool {
        if reachesBrokers { return try isActive() }
        if isLeader {
            guard let answered = brokersAnsweredAt, .now - answered > Self.brokersSilentMax else { return true }
            throw BrokersSilent(reason: problem ?? "")
        }
        // Keeps the session alive: PostgreSQL ends idle ones.
        try connection.run("SELECT")
        return false
    }

    /// Whether only this partition's leader takes no messages: since this one was sent, brokers have answered and
    /// confirmed others.
    func isAlone(_ delivery: Delivery) -> Bool {
        guard let sent = sentAt[delivery.tag], let lastConfirmed, let brokersAnsweredAt else { return false }
        return min(lastConfirmed, brokersAnsweredAt) >= sent
    }

    /// The leader reaches no broker.
    struct BrokersSilent: Error, CustomStringConvertible {
        let reason: String
        var description: String { "the brokers do not answer, another relay may take over: \(reason)" }
    }
}
