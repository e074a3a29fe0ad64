internal import CKafka

/// Owns one `rd_kafka_conf_t`, until `rd_kafka_new` succeeds and takes it.
@safe struct ConfigurationHandle: ~Copyable {
    let pointer: OpaquePointer

    init() { unsafe pointer = rd_kafka_conf_new() }
    deinit { unsafe rd_kafka_conf_destroy(pointer) }

    /// - Throws: An error that names the property, when librdkafka does not know it or refuses its value.
    func set(_ name: String, to value: String) throws(KafkaError) {
        let error = ErrorText()
        let result = unsafe rd_kafka_conf_set(pointer, name, value, error.pointer, ErrorText.capacity)
        guard result == RD_KAFKA_CONF_OK else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, error.text) }
    }

    consuming func relinquish() { discard self }
}

/// Owns the buffer into which librdkafka writes what went wrong.
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

/// The librdkafka properties of a client: this project's defaults, the caller's over them.
///
/// Source of names, ranges and librdkafka's own defaults: librdkafka 2.0.2, CONFIGURATION.md.
struct ClientProperties {
    private(set) var values: [String: String]

    /// - Throws: When `overrides` contains a property of `reserved`: what the client promises rests on it.
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

    private static let common = [
        "client.id": "fieldpost",
        // A broker that comes back is found again within a second, not ten.
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "1000",
        // Idle connections that a firewall dropped are noticed.
        "socket.keepalive.enable": "true",
    ]

    static let consumer = [
        "enable.auto.commit": "true",
        "auto.commit.interval.ms": "1000",
        "auto.offset.reset": "earliest",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "1000",
        // librdkafka waits this long for the answer to a JoinGroup too, which a coordinator that was frozen meanwhile
        // never gives: with the usual 300 s the worker would stand still for five minutes.
        "max.poll.interval.ms": "60000",
        // What is fetched ahead is memory of each worker's. librdkafka 2.0.2 counts keys and values, not headers and
        // its own 290 bytes a message; and it stops fetching a partition for a while whenever that has enough: 4 MB
        // gave 22,000 events/s to one who does nothing with them. A worker decides fewer, and as many with 16 MB as
        // with 64.
        "queued.max.messages.kbytes": "16384",
        "queued.min.messages": "2000",
        // A topic that does not exist yet, or a broker started empty, is looked for again after this long.
        "topic.metadata.refresh.interval.ms": "10000",
        // Once a second librdkafka tells which brokers are up, and whether the group is steady: what `isConnected` and
        // `commitAnew` go by.
        "statistics.interval.ms": "1000",
    ]

    static let producer = [
        "acks": "all",
        "enable.idempotence": "true",
        // The partitioner of the Java client, so that any producer puts a key on the same partition.
        "partitioner": "murmur2_random",
        "linger.ms": "2",
        // An event's headers and field names repeat: a third of the bytes on the wire, in the broker and in a
        // consumer's queue, for less of the consumer's time (0.51 against 0.73 µs per message).
        "compression.codec": "lz4",
        "queue.buffering.max.messages": "100000",
        "queue.buffering.max.kbytes": "65536",
        "message.timeout.ms": "120000",
        "statistics.interval.ms": "1000",
    ]
}
