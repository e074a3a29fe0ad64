/// Consumer group, topics and connections of a worker.
package struct WorkerConfiguration: Sendable {
    package let group: String
    package let topics: [String]
    package let brokers: String
    /// librdkafka's properties.
    package private(set) var properties: [String: String]
    /// A libpq connection string.
    package let conninfo: String
    /// Number of the worker in its process.
    package private(set) var index = 0

    /// The configuration of one of several workers in a process. Each is a group member with its own
    /// `group.instance.id`.
    package func member(_ index: Int) -> WorkerConfiguration {
        var configuration = self
        configuration.index = index
        if let id = properties["group.instance.id"] { configuration.properties["group.instance.id"] = "\(id)-\(index)" }
        return configuration
    }
}

/// Limits of a worker. Beyond each of them backpressure applies: messages stay in Kafka, keys in PostgreSQL.
package struct WorkerLimits: Sendable {
    /// Maximum number of messages per poll.
    package var batchCountMax = 500
    /// Maximum number of calls in flight, per environment.
    package var inFlightMax = 64
    /// Maximum number of keys in flight: queued, deciding, waiting for a call, or called.
    package var keysInFlightMax = 2_048
    /// Time for which a taken deferred key belongs to this worker before another may take it.
    package var dueLease = Duration.seconds(30)
    /// Whether a result that is not decided yet occupies its call's slot. For large results.
    package var resultsHoldSlots = false
    /// Interval between scans for due deferred keys, in addition to scans for free slots.
    package var dueInterval = Duration.milliseconds(250)
    /// Number of attempts after which a key is dead-lettered.
    package var attemptsMax = 20
    package var circuit = CircuitBreaker()
    /// Maximum pause that another system may request (Retry-After).
    package var retryAfterMax = Duration.seconds(300)
    /// Maximum time a call waits in the queue before further calls of its person are deferred. An environment whose
    /// calls wait longer gets no more capacity, and its messages do not stay in Kafka, where they would delay those of
    /// others.
    package var queueWaitMax = Duration.seconds(1)
    /// Time after which an environment's call function and rate limits are reloaded.
    package var callerAgeMax = Duration.seconds(10)

    package init() {}

    /// Maximum number of messages of keys in flight. The write of each decision arrives as another message of its key:
    /// this leaves room for them while calls of all keys are slow.
    var messagesInFlightMax: Int { keysInFlightMax * 4 }

    /// Maximum number of keys in flight of one environment, given the number of others: a share of the remaining
    /// capacity, so that one more slow back end still finds some.
    func keysInFlightMax(beside others: Int) -> Int {
        let free = keysInFlightMax - others
        return max(1, free / 4, min(inFlightMax, free / 2))
    }

    /// The same if the next key belongs to a person without keys in flight.
    func keysInFlightMaxForNewPerson(beside others: Int) -> Int { max(1, (keysInFlightMax - others) / 2) }
}
