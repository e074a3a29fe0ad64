/// Broker rejections that need manual action: logins, permissions, missing topics.
///
/// librdkafka reports some of them once and some at every attempt; this type reports each once.
struct BrokerRejections {
    /// The minimum time until the same rejection is reported again, if it was resolved meanwhile.
    private static let repeatMin = Duration.seconds(600)

    /// The current rejections by code.
    private var current: [Int32: KafkaError] = [:]
    private var reportedAt: [Int32: ContinuousClock.Instant] = [:]
    private var unreported: [KafkaError] = []

    /// The most recent current rejection.
    private(set) var last: KafkaError?

    mutating func note(_ error: KafkaError, now: ContinuousClock.Instant = .now) {
        guard error.advice != nil else { return }
        current[error.code] = error
        last = error
        if let reported = reportedAt[error.code], now - reported < Self.repeatMin { return }
        reportedAt[error.code] = now
        unreported.append(error)
    }

    /// Records that a broker is connected.
    mutating func connected() { end { $0.isOfConnection } }

    /// Records that partitions were assigned or messages received: requests are accepted.
    mutating func served() { end { _ in true } }

    private mutating func end(_ isOver: (KafkaError) -> Bool) {
        if current.isEmpty { return }
        current = current.filter { !isOver($0.value) }
        if let error = last, current[error.code] == nil { last = current.values.first }
    }

    /// Returns the rejections that were not reported yet.
    mutating func take() -> [KafkaError] {
        defer { unreported = [] }
        return unreported
    }
}
