internal import CKafka

/// Owns one `rd_kafka_conf_t` until `rd_kafka_new` succeeds and takes ownership.
@safe struct ConfigurationHandle: ~Copyable {
    let pointer: OpaquePointer

    init() { unsafe pointer = rd_kafka_conf_new() }
    deinit { unsafe rd_kafka_conf_destroy(pointer) }

    /// - Throws: An error with the property's name if librdkafka does not support it or rejects its value.
    func set(_ name: String, to value: String) throws(KafkaError) {
        let error = ErrorText()
        let result = unsafe rd_kafka_conf_set(pointer, name, value, error.pointer, ErrorText.capacity)
        guard result == RD_KAFKA_CONF_OK else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, error.text) }
    }

    consuming func relinquish() { discard self }
}

/// Owns the buffer into which librdkafka writes an error message.
@safe struct ErrorText: ~Copyable {
    static let capacity = 512
    let pointer: UnsafeMutablePointer<CChar>

    init() {
        unsafe pointer = .allocate(capacity: Self.capacity)
        unsafe pointer.initialize(repeating: 0, count: Self.capacity)
    }
    deinit { unsafe pointer.deallocate() }

    var text: String { unsafe String(cString: pointer) }
}

/// The librdkafka properties of a client: this project's defaults, overridden by the caller's.
///
/// docs/operators/kafka-clients.md lists them; a test compares these.
///
/// Source of names, ranges and librdkafka's own defaults: librdkafka 2.0.2, CONFIGURATION.md.
struct ClientProperties {
    private(set) var values: [String: String]

    /// - Throws: If `overrides` changes a property of `reserved`, on which the client's guarantees depend.
    init(
        brokers: String, defaults: [String: String], overrides: [String: String], reserved: [String: String] = [:]
    ) throws(KafkaError) {
        values = Self.common.merging(defaults) { $1 }.merging(overrides) { $1 }
        for (name, value) in reserved {
            if let override = overrides[name], override != value {
                throw KafkaError(
                    RD_KAFKA_RESP_ERR__INVALID_ARG, "property \"\(name)\" must be \"\(value)\", not \"\(override)\"")
            }
            values[name] = value
        }
        if overrides["bootstrap.servers"] == nil { values["bootstrap.servers"] = brokers }
    }

    func makeHandle() throws(KafkaError) -> ConfigurationHandle {
        let handle = ConfigurationHandle()
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { try handle.set(name, to: value) }
        return handle
    }

    static let common = [
        // Brokers' quotas, logs and metrics distinguish clients by it.
        "client.id": program,
        // Reconnect to a recovered broker within one second instead of ten.
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
        // Detect idle connections that a firewall dropped.
        "socket.keepalive.enable": "true",
    ]

    /// The name of this program, such as `entry-submitter`.
    private static let program = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "fieldpost"

    static let consumer = [
        "enable.auto.commit": "true",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "1500",
        // librdkafka also waits this long for the response to a JoinGroup, which a frozen coordinator never sends: with
        // the default of 300 s the worker would be stalled for five minutes.
        "max.poll.interval.ms": "60000",
        // Prefetched messages use memory of each worker. librdkafka 2.0.2 counts keys and values, but not headers and
        // its own 290 bytes per message. It pauses fetching a partition with enough messages: 4 MB limit a consumer
        // without processing to 22,000 events/s. Workers process fewer; their throughput is the same with 16 MB and 64
        // MB.
        "queued.max.messages.kbytes": "16384",
        "queued.min.messages": "2000",
        // The interval at which librdkafka looks up missing topics, such as after a broker was started empty.
        "topic.metadata.refresh.interval.ms": "10000",
        // The interval of statistics with the brokers' and the group's state, on which `connectionProblem` and
        // `recommit` depend.
        "statistics.interval.ms": "1000",
    ]

    static let producer = [
        "acks": "all",
        "enable.idempotence": "true",
        // The Java client's partitioner, so that all producers map a key to the same partition.
        "partitioner": "murmur2_random",
        // A change is sent immediately. While requests are in flight, further changes of a partition form a batch.
        "linger.ms": "0",
        // Headers and field names repeat: compression saves two thirds of the bytes on the wire, in the broker and in
        // consumers' queues, and time of the consumer (0.51 instead of 0.73 µs per message).
        "compression.codec": "lz4",
        "queue.buffering.max.messages": "100000",
        "queue.buffering.max.kbytes": "65536",
        "message.timeout.ms": "120000",
        "statistics.interval.ms": "1000",
    ]
}
