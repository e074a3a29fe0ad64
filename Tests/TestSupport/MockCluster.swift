internal import CKafka

/// librdkafka's mock cluster, with one broker by default: the real Kafka protocol over TCP, in this process, on its
/// own port.
@safe package final class MockCluster {
    private let client: OpaquePointer
    private var cluster: OpaquePointer
    private let topics: [String: Int]
    /// In front of a cluster that restarts.
    private let proxies: BrokerProxies?
    /// `host:port`
    package let address: String

    package struct Failure: Error {
        package let reason: String
    }

    /// - Parameter restarts: Whether `restartEmpty` is called.
    package init(topics: [String: Int], brokers: Int32 = 1, restarts: Bool = false) throws {
        let configuration = unsafe rd_kafka_conf_new()
        unsafe rd_kafka_conf_set(configuration, "log_level", "3", nil, 0)
        guard let client = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            throw Failure(reason: "no client")
        }
        guard let cluster = unsafe rd_kafka_mock_cluster_new(client, brokers) else {
            unsafe rd_kafka_destroy(client)
            throw Failure(reason: "no cluster")
        }
        unsafe self.client = client
        unsafe self.cluster = cluster
        self.topics = topics
        let address = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
        proxies = restarts ? try BrokerProxies(inFrontOf: address) : nil
        self.address = proxies?.address ?? address
        try createTopics()
    }

    deinit {
        unsafe rd_kafka_mock_cluster_destroy(cluster)
        unsafe rd_kafka_destroy(client)
    }

    /// Simulates a restart of the broker after a kill: cuts every connection; a broker without messages, groups and
    /// producers then has the same address.
    package func restartEmpty() throws {
        guard let proxies, let made = unsafe rd_kafka_mock_cluster_new(client, 1) else {
            throw Failure(reason: "the cluster cannot restart")
        }
        let former = unsafe cluster
        unsafe cluster = made
        try createTopics()
        try proxies.replace(1, byThatOf: unsafe String(cString: rd_kafka_mock_cluster_bootstraps(made)))
        unsafe rd_kafka_mock_cluster_destroy(former)
    }

    private func createTopics() throws {
        for (topic, count) in topics {
            let code = unsafe rd_kafka_mock_topic_create(cluster, topic, Int32(count), 1)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw Failure(reason: "topic \(topic)") }
        }
    }

    /// Requests whose responses can be replaced by errors, by their API key in the Kafka protocol.
    package enum Request: Int16 {
        case produce = 0
        case fetch = 1
        case metadata = 3
        case offsetCommit = 8
        case offsetFetch = 9
        case joinGroup = 11
        case heartbeat = 12
        case initProducerID = 22
    }

    /// Fails the next requests of that kind with these error codes (Kafka protocol, "Error Codes"), one each.
    package func spoil(_ request: Request, with codes: [Int32]) {
        let errors = codes.map { rd_kafka_resp_err_t($0) }
        unsafe rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, errors.count, errors)
    }

    /// Delays the response to the next request of that kind, like a frozen broker.
    package func delay(_ request: Request, milliseconds: Int32) {
        _ = unsafe fieldpost_kafka_mock_delay(cluster, request.rawValue, milliseconds)
    }

    /// Fails all requests for the topic with this error code; 0 ends it.
    package func spoil(topic: String, with code: Int32) {
        unsafe rd_kafka_mock_topic_set_error(cluster, topic, rd_kafka_resp_err_t(code))
    }

    /// Sets whether a partition has a leader. Without a leader, it can neither be written nor read.
    package func lead(_ topic: String, _ partition: Int32, _ hasLeader: Bool) {
        _ = unsafe rd_kafka_mock_partition_set_leader(cluster, topic, partition, hasLeader ? 1 : -1)
    }

    /// Sets the leader of a partition.
    package func lead(_ topic: String, _ partition: Int32, by broker: Int32) {
        _ = unsafe rd_kafka_mock_partition_set_leader(cluster, topic, partition, broker)
    }

    /// Sets the coordinator of a group.
    package func coordinate(_ group: String, by broker: Int32) {
        _ = unsafe rd_kafka_mock_coordinator_set(cluster, "group", group, broker)
    }

    /// Closes the port and all connections until `setUp`. All data is kept.
    package func setDown(_ broker: Int32 = 1) { _ = unsafe rd_kafka_mock_broker_set_down(cluster, broker) }
    package func setUp(_ broker: Int32 = 1) { _ = unsafe rd_kafka_mock_broker_set_up(cluster, broker) }

    /// Delays each response of a broker. Brokers are numbered from 1.
    package func setRoundTrip(milliseconds: Int32, of broker: Int32 = 1) {
        _ = unsafe rd_kafka_mock_broker_set_rtt(cluster, broker, milliseconds)
    }
}

/// Runs `body` with a cluster that has these topics (topic → number of partitions), then stops the cluster.
///
/// `body` may block: it runs on its own thread, so that many tests can wait for their clusters at once.
package func withMockCluster(
    topics: [String: Int], brokers: Int32 = 1, restarts: Bool = false,
    _ body: @Sendable (MockCluster) throws -> Void
) async throws {
    try await withOwnThread {
        let cluster = try MockCluster(topics: topics, brokers: brokers, restarts: restarts)
        try withExtendedLifetime(cluster) { try body(cluster) }
    }
}
