internal import CBroker
internal import CKafka

/// librdkafka's mock cluster with one broker, on a free port of 127.0.0.1, that advertises another address.
///
/// Its data are lost when it ends. Limits (librdkafka 2.0.2): at most 5 MB per partition; consumer groups, committed
/// offsets, watermarks and idempotent producers work; no CreateTopics, ListGroups or DescribeGroups; a request for an
/// unknown topic creates it with 4 partitions.
@safe struct MockBroker: ~Copyable {
    private let client: OpaquePointer
    private let cluster: OpaquePointer
    /// The port of 127.0.0.1 on which it listens.
    let port: Int

    /// Listens until it is deinitialized.
    ///
    /// - Parameters:
    ///   - host: The IPv4 address that it advertises, with `port`. Clients connect there.
    ///   - topics: Topic → number of partitions.
    /// - Throws: `EmulatorError` if `host` is not such an address, or a topic cannot be created.
    init(advertising host: String, _ port: Int, topics: [String: Int]) throws(EmulatorError) {
        guard unsafe cbroker_advertise(host, Int32(port)) == 0 else {
            throw EmulatorError("broker: '\(host)' is not an IPv4 address to which clients can connect")
        }
        // The cluster needs a client to run in; that client itself connects to nothing.
        let configuration = unsafe rd_kafka_conf_new()
        unsafe rd_kafka_conf_set(configuration, "log_level", "3", nil, 0)
        guard let client = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            _ = cbroker_end_advertising()
            throw EmulatorError("broker: librdkafka gave no client")
        }
        let made = unsafe rd_kafka_mock_cluster_new(client, 1)
        let port = cbroker_end_advertising()
        guard let cluster = unsafe made else {
            unsafe rd_kafka_destroy(client)
            throw EmulatorError("broker: librdkafka gave no cluster")
        }
        guard port > 0 else {
            unsafe rd_kafka_mock_cluster_destroy(cluster)
            unsafe rd_kafka_destroy(client)
            throw EmulatorError("broker: librdkafka does not call this program's getsockname")
        }
        for (topic, count) in topics {
            let error = unsafe rd_kafka_mock_topic_create(cluster, topic, Int32(count), 1)
            if error == RD_KAFKA_RESP_ERR_NO_ERROR { continue }
            unsafe rd_kafka_mock_cluster_destroy(cluster)
            unsafe rd_kafka_destroy(client)
            throw EmulatorError("broker: topic \(topic) of \(count) partitions was refused")
        }
        unsafe self.client = client
        unsafe self.cluster = cluster
        self.port = Int(port)
    }

    deinit {
        unsafe rd_kafka_mock_cluster_destroy(cluster)
        unsafe rd_kafka_destroy(client)
    }
}
