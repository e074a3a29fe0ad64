internal import CBroker
internal import CKafka

/// A Kafka broker on 127.0.0.1 with a fixed port: librdkafka's mock cluster with one broker.
///
/// Any client can use it over TCP; its data are lost when it ends. Limits (librdkafka 2.0.2): at most 5 MB per
/// partition; consumer groups, committed offsets, watermarks and idempotent producers work; no CreateTopics, ListGroups
/// or DescribeGroups; a request for an unknown topic creates it with 4 partitions.
@safe struct MockBroker: ~Copyable {
    private let client: OpaquePointer
    private let cluster: OpaquePointer
    /// `host:port`
    let address: String

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Listens until it is deinitialized.
    ///
    /// - Parameters:
    ///   - topics: Topic → number of partitions.
    ///   - roundTrip: Additional latency of each response, in milliseconds.
    /// - Throws: `Failure` if the port is taken, or a topic cannot be created.
    init(port: Int, topics: [String: Int], roundTrip: Int = 0) throws(Failure) {
        guard cbroker_port_is_free(Int32(port)) == 1 else {
            throw Failure(description: "broker: port \(port) of 127.0.0.1 is taken")
        }
        // The cluster needs a client to run in; that client itself connects to nothing.
        let configuration = unsafe rd_kafka_conf_new()
        unsafe rd_kafka_conf_set(configuration, "log_level", "3", nil, 0)
        guard let client = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            throw Failure(description: "broker: librdkafka gave no client")
        }
        do throws(Failure) {
            let cluster = try unsafe MockBroker.cluster(of: client, port, topics)
            unsafe self.client = client
            unsafe self.cluster = cluster
            address = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
            if roundTrip > 0 { unsafe rd_kafka_mock_broker_set_rtt(cluster, 1, Int32(roundTrip)) }
        } catch {
            unsafe rd_kafka_destroy(client)
            throw error
        }
    }

    /// Maximum number of attempts if a client is faster than the creation of topics.
    private static let attemptsMax = 20

    /// The cluster listens before it has its topics, and a client's request creates a topic with other partitions.
    /// Therefore the cluster is recreated until no client was faster.
    private static func cluster(
        of client: OpaquePointer, _ port: Int, _ topics: [String: Int]
    ) throws(Failure) -> OpaquePointer {
        var refused = ""
        for _ in 0..<attemptsMax {
            cbroker_fix_ports(Int32(port), 1)
            let cluster = unsafe rd_kafka_mock_cluster_new(client, 1)
            let isFixed = cbroker_ports_left() == 0
            cbroker_fix_ports(0, 0)
            guard let cluster = unsafe cluster, isFixed else {
                if let cluster = unsafe cluster { unsafe rd_kafka_mock_cluster_destroy(cluster) }
                throw Failure(description: "broker: no cluster on port \(port) of 127.0.0.1")
            }
            let isRefused = topics.sorted { $0.key < $1.key }.first { topic, count in
                unsafe rd_kafka_mock_topic_create(cluster, topic, Int32(count), 1) != RD_KAFKA_RESP_ERR_NO_ERROR
            }
            guard let (topic, count) = isRefused else { return unsafe cluster }
            refused = "topic \(topic) of \(count) partitions was refused"
            unsafe rd_kafka_mock_cluster_destroy(cluster)
        }
        throw Failure(description: "broker: \(refused)")
    }

    deinit {
        unsafe rd_kafka_mock_cluster_destroy(cluster)
        unsafe rd_kafka_destroy(client)
    }
}
