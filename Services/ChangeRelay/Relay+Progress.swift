import Kafka
import Postgres

/// Whether the relay gets on: one that does not is not ready, and gives up leadership.
extension Relay {
    /// Brokers that have answered nothing for so long: another relay may reach them.
    static let brokersSilentMax = Duration.seconds(15)
    /// So long the broker may confirm nothing of what was sent before the relay is not ready.
    static let unconfirmedMax = Duration.seconds(5)

    /// This relay holds the lock of the active one.
    var isLeader: Bool { lockedOpenCount == connection.openCount }

    /// Whether the brokers answered the last time. One that they do not answer does not become the active one.
    var reachesBrokers: Bool { brokersAnsweredAt != nil && brokersFailure == nil }

    /// Why nothing can be published now; `nil` when the brokers answer, and confirm what is sent.
    var problem: String? {
        if let brokersFailure { return brokersFailure.description }
        if brokersAnsweredAt == nil { return "the brokers have not answered yet" }
        guard isLeader else { return nil }
        return producer.connectionProblem
            ?? blockedTopics.min { $0.key < $1.key }.map { "topic \($0.key): \($0.value)" } ?? stall
    }

    /// A relay that has just become the active one has yet to show that it gets on.
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
    /// - Throws: `BrokersSilent`, by which the active one gives up the lock.
    mutating func mayPublish() throws -> Bool {
        if reachesBrokers { return try isActive() }
        if isLeader {
            guard let answered = brokersAnsweredAt, .now - answered > Self.brokersSilentMax else { return true }
            throw BrokersSilent(reason: problem ?? "")
        }
        // Says something, so that PostgreSQL does not end the session as idle.
        try connection.run("SELECT")
        return false
    }

    /// Since the message was sent that was not delivered, brokers have answered and confirmed others: its leader alone
    /// does not take it.
    func isAlone(_ delivery: Delivery) -> Bool {
        guard let sent = sentAt[delivery.tag], let lastConfirmed, let brokersAnsweredAt else { return false }
        return min(lastConfirmed, brokersAnsweredAt) >= sent
    }

    /// The active relay reaches no broker.
    struct BrokersSilent: Error, CustomStringConvertible {
        let reason: String
        var description: String { "the brokers do not answer, another relay may take over: \(reason)" }
    }
}
