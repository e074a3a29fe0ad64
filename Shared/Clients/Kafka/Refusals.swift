/// What brokers refuse this client, and what only a person can change: logins, permissions, topics that are not there.
///
/// librdkafka tells some of it once and some at every attempt; told on, it is told once.
struct Refusals {
    /// The same is told again after so long at the earliest, when it was over meanwhile.
    private static let repeatMin = Duration.seconds(600)

    /// Those that last, by code.
    private var current: [Int32: KafkaError] = [:]
    private var toldAt: [Int32: ContinuousClock.Instant] = [:]
    private var untold: [KafkaError] = []

    /// One of those that last, the latest change first.
    private(set) var last: KafkaError?

    mutating func note(_ error: KafkaError, now: ContinuousClock.Instant = .now) {
        guard error.advice != nil else { return }
        current[error.code] = error
        last = error
        if let told = toldAt[error.code], now - told < Self.repeatMin { return }
        toldAt[error.code] = now
        untold.append(error)
    }

    /// A broker is connected.
    mutating func connected() { end { $0.isOfConnection } }

    /// Partitions were assigned, or messages came: what was asked for is given.
    mutating func served() { end { _ in true } }

    private mutating func end(_ isOver: (KafkaError) -> Bool) {
        if current.isEmpty { return }
        current = current.filter { !isOver($0.value) }
        if let error = last, current[error.code] == nil { last = current.values.first }
    }

    /// Those that nobody was told of yet.
    mutating func take() -> [KafkaError] {
        defer { untold = [] }
        return untold
    }
}
