/// Where a worker works.
package struct WorkerPlace: Sendable {
    package let group: String
    package let topics: [String]
    package let brokers: String
    /// librdkafka's properties.
    package private(set) var properties: [String: String]
    /// A libpq connection string.
    package let conninfo: String
    /// Which of the workers of a process it is.
    package private(set) var index = 0

    package init(group: String, topics: [String], brokers: String, properties: [String: String], conninfo: String) {
        self.group = group
        self.topics = topics
        self.brokers = brokers
        self.properties = properties
        self.conninfo = conninfo
    }

    /// The place of one of several workers in a process: `group.instance.id` is one member's, and each worker is one.
    package func member(_ index: Int) -> WorkerPlace {
        var place = self
        place.index = index
        if let id = properties["group.instance.id"] { place.properties["group.instance.id"] = "\(id)-\(index)" }
        return place
    }
}

/// How much a worker takes on. Each bound pushes back: what is beyond it stays in Kafka or in PostgreSQL.
package struct WorkerLimits: Sendable {
    /// Messages taken at a time.
    package var batchCountMax = 500
    /// Calls under way at a time, for each environment.
    package var inFlightMax = 64
    /// Keys in flight at a time: being called, waiting for a call, or waiting for their turn.
    package var heldMax = 2_048
    /// How long a parked key that was taken stays with this worker before another may take it.
    package var dueLease = Duration.seconds(30)
    /// Whether an answer that was not looked at counts as a call under way: where answers are large.
    package var answersKeepPlaces = false
    /// How often parked keys are looked for, beside when there is room for what waits for it.
    package var dueInterval = Duration.milliseconds(250)
    /// Tries of a key before it waits for a person.
    package var attemptsMax = 20
    package var circuit = CircuitBreaker()
    /// The longest that another system is left alone because it asks for it.
    package var askedWaitMax = Duration.seconds(300)
    /// How long a call may wait for its turn before others of its person are put aside. An environment whose calls wait
    /// longer takes no more room than it has, and its messages are not left in Kafka, where others' are behind them.
    package var turnMax = Duration.seconds(1)
    /// How long calls are made as an environment's back end was found, before it is looked up again.
    package var callerAgeMax = Duration.seconds(10)

    package init() {}

    /// Messages of keys in flight. What is decided for a key comes back as a message of it: there is room for that,
    /// however long the calls of all keys take.
    var heldMessagesMax: Int { heldMax * 4 }

    /// Calls of one environment that are in flight at a time beside so many of others: a part of what these leave over,
    /// so that for many slow back ends there is room for one more.
    func heldMax(beside others: Int) -> Int {
        let free = heldMax - others
        return max(1, free / 4, min(inFlightMax, free / 2))
    }

    /// The same when the next one is of a person who has none.
    func heldMaxOfNew(beside others: Int) -> Int { max(1, (heldMax - others) / 2) }
}
