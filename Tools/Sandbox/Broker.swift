internal import CBroker
internal import CKafka

/// A Kafka broker with a fixed address: librdkafka's mock cluster with one broker.
///
/// Any client can use it over TCP; its data are lost when it ends. Limits (librdkafka 2.0.2): at most 5 MB per
/// partition; consumer groups, committed offsets, watermarks and idempotent producers work; no CreateTopics, ListGroups
/// or DescribeGroups; a request for an unknown topic creates it with 4 partitions.
@safe struct MockBroker: ~Copyable {
    private let client: OpaquePointer
    private let cluster: OpaquePointer
    /// `host:port`
    let address: String

    /// Listens until it is deinitialized.
    ///
    /// - Parameters:
    ///   - host: IPv4 address of this machine, at which it listens, and which it advertises.
    ///   - topics: Topic → number of partitions.
    ///   - roundTrip: Additional latency of each response, in milliseconds.
    /// - Throws: `EmulatorError` if the address is not one of this machine, the port is taken, or a topic cannot be
    ///   created.
    init(host: String, port: Int, topics: [String: Int], roundTrip: Int = 0) throws(EmulatorError) {
        guard unsafe cbroker_use_address(host) == 0 else {
            throw EmulatorError("broker: '\(host)' is not an IPv4 address to which clients can connect")
        }
        guard cbroker_port_is_free(Int32(port)) == 1 else {
            throw EmulatorError("broker: \(host):\(port) is taken, or not an address of this machine")
        }
        // The cluster needs a client to run in; that client itself connects to nothing.
        let configuration = unsafe rd_kafka_conf_new()
        unsafe rd_kafka_conf_set(configuration, "log_level", "3", nil, 0)
        guard let client = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            throw EmulatorError("broker: librdkafka gave no client")
        }
        do throws(EmulatorError) {
            let cluster = try unsafe MockBroker.cluster(of: client, "\(host):\(port)", port, topics)
            unsafe self.client = client
            unsafe self.cluster = cluster
            address = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
            if roundTrip > 0 { unsafe rd_kafka_mock_broker_set_rtt(cluster, 1, Int32(roundTrip)) }
        } catch {
            unsafe rd_kafka_destroy(client)
            throw error
        }
    }

    /// Clients can connect once the cluster has its topics.
    private static func cluster(
        of client: OpaquePointer, _ address: String, _ port: Int, _ topics: [String: Int]
    ) throws(EmulatorError) -> OpaquePointer {
        cbroker_fix_ports(Int32(port), 1)
        let made = unsafe rd_kafka_mock_cluster_new(client, 1)
        let isFixed = cbroker_ports_left() == 0
        cbroker_fix_ports(0, 0)
        guard let cluster = unsafe made else { throw EmulatorError("broker: librdkafka gave no cluster") }
        var failure = isFixed ? nil : "no cluster on \(address)"
        for (topic, count) in topics where failure == nil {
            let error = unsafe rd_kafka_mock_topic_create(cluster, topic, Int32(count), 1)
            if error != RD_KAFKA_RESP_ERR_NO_ERROR { failure = "topic \(topic) of \(count) partitions was refused" }
        }
        if failure == nil, cbroker_accept() != 0 { failure = "\(address) cannot be opened" }
        guard let failure else { return unsafe cluster }
        unsafe rd_kafka_mock_cluster_destroy(cluster)
        throw EmulatorError("broker: \(failure)")
    }

    deinit {
        unsafe rd_kafka_mock_cluster_destroy(cluster)
        unsafe rd_kafka_destroy(client)
    }
}
