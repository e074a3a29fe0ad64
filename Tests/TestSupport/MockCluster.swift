internal import CBroker
internal import CKafka
import Synchronization

/// librdkafka's mock cluster, with one broker unless told otherwise: real Kafka protocol over TCP, in this process, on
/// a port of its own.
@safe package final class MockCluster {
    private let client: OpaquePointer
    private var cluster: OpaquePointer
    private let topics: [String: Int]
    /// `host:port`
    package let address: String

    package struct Failure: Error {
        package let reason: String
    }

    package init(topics: [String: Int], brokers: Int32 = 1) throws {
        let configuration = unsafe rd_kafka_conf_new()
        unsafe rd_kafka_conf_set(configuration, "log_level", "3", nil, 0)
        guard let client = unsafe rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0) else {
            throw Failure(reason: "no client")
        }
        guard let cluster = unsafe Self.makeCluster(client, port: nil, brokers: brokers) else {
            unsafe rd_kafka_destroy(client)
            throw Failure(reason: "no cluster")
        }
        unsafe self.client = client
        unsafe self.cluster = cluster
        self.topics = topics
        address = unsafe String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
        try createTopics()
    }

    deinit {
        unsafe rd_kafka_mock_cluster_destroy(cluster)
        unsafe rd_kafka_destroy(client)
    }

    /// As if the broker's process was killed and started again: every connection is cut, and a broker without
    /// messages, groups and producers listens on the same port.
    package func restartEmpty() throws {
        guard let port = address.split(separator: ":").last.flatMap({ Int32($0) }) else {
            throw Failure(reason: "no port in \(address)")
        }
        // A client that waits for the port may be faster than the topics, which it then gets with other partitions.
        for _ in 0..<20 {
            unsafe rd_kafka_mock_cluster_destroy(cluster)
            guard let cluster = unsafe Self.makeCluster(client, port: port) else {
                fatalError("port \(port) was taken by another process while the broker restarted")
            }
            unsafe self.cluster = cluster
            if (try? createTopics()) != nil { return }
        }
        throw Failure(reason: "clients were faster than the topics every time")
    }

    private func createTopics() throws {
        for (topic, count) in topics {
            let code = unsafe rd_kafka_mock_topic_create(cluster, topic, Int32(count), 1)
            guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { throw Failure(reason: "topic \(topic)") }
        }
    }

    /// Ports are fixed for the whole process: one cluster is made at a time.
    private static let making = Mutex<Void>(())

    private static func makeCluster(_ client: OpaquePointer, port: Int32?, brokers: Int32 = 1) -> OpaquePointer? {
        var cluster: OpaquePointer?
        making.withLock { _ in
            if let port { cbroker_fix_ports(port, 1) }
            unsafe cluster = rd_kafka_mock_cluster_new(client, brokers)
            cbroker_fix_ports(0, 0)
        }
        return unsafe cluster
    }

    /// The requests whose answers can be spoiled, by their number in the Kafka protocol.
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

    /// The next requests of that kind get these error codes (Kafka protocol, "Error Codes"), one each.
    package func spoil(_ request: Request, with codes: [Int32]) {
        let errors = codes.map { rd_kafka_resp_err_t($0) }
        unsafe rd_kafka_mock_push_request_errors_array(cluster, request.rawValue, errors.count, errors)
    }

    /// The next request of that kind is answered so much later, as by a broker that was frozen.
    package func delay(_ request: Request, milliseconds: Int32) {
        _ = unsafe fieldpost_kafka_mock_delay(cluster, request.rawValue, milliseconds)
    }

    /// Whoever asks for the topic gets this error code from now on; 0 ends it.
    package func spoil(topic: String, with code: Int32) {
        unsafe rd_kafka_mock_topic_set_error(cluster, topic, rd_kafka_resp_err_t(code))
    }

    /// Whether a partition has a leader. Without one nothing can be written to it or read from it.
    package func lead(_ topic: String, _ partition: Int32, _ hasLeader: Bool) {
        _ = unsafe rd_kafka_mock_partition_set_leader(cluster, topic, partition, hasLeader ? 1 : -1)
    }

    /// Which broker leads a partition.
    package func lead(_ topic: String, _ partition: Int32, by broker: Int32) {
        _ = unsafe rd_kafka_mock_partition_set_leader(cluster, topic, partition, broker)
    }

    /// Which broker coordinates a group.
    package func coordinate(_ group: String, by broker: Int32) {
        _ = unsafe rd_kafka_mock_coordinator_set(cluster, "group", group, broker)
    }

    /// Closes the port and all connections, until `setUp`. Nothing is forgotten.
    package func setDown(_ broker: Int32 = 1) { _ = unsafe rd_kafka_mock_broker_set_down(cluster, broker) }
    package func setUp(_ broker: Int32 = 1) { _ = unsafe rd_kafka_mock_broker_set_up(cluster, broker) }

    /// Makes each answer of a broker, which are numbered from 1 on, take that long.
    package func setRoundTrip(milliseconds: Int32, of broker: Int32 = 1) {
        _ = unsafe rd_kafka_mock_broker_set_rtt(cluster, broker, milliseconds)
    }
}

/// Lends a cluster with these topics (topic → number of partitions), and ends it. `body` blocks: it has a thread of
/// its own, so that many tests can wait for their clusters at once.
package func withMockCluster(
    topics: [String: Int], brokers: Int32 = 1, _ body: @Sendable (MockCluster) throws -> Void
) async throws {
    try await withOwnThread {
        let cluster = try MockCluster(topics: topics, brokers: brokers)
        try withExtendedLifetime(cluster) { try body(cluster) }
    }
}
