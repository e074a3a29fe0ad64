internal import CKafka

/// The topics and brokers of a cluster.
package struct ClusterMetadata: Equatable, Sendable {
    /// The number of partitions by topic.
    package var topics: [String: Int32]
    /// Partitions without an available leader, which can be neither written nor read.
    package var leaderless: Set<TopicPartition>
    package let brokers: [Broker]
    /// The smallest number of replicas of any partition, by topic.
    package var replicas: [String: Int32] = [:]
    /// Errors by topic, such as for topics that this client is not authorized to describe.
    package var refused: [String: KafkaError] = [:]
    /// The id of the leader's broker by partition.
    package var leaders: [TopicPartition: Int32] = [:]

    package struct Broker: Equatable, Sendable {
        package let id: Int32
        package let host: String
        package let port: Int32
    }
}

/// A consumer group as its coordinator reports it.
package struct ConsumerGroup: Equatable, Sendable {
    package let name: String
    /// The state in Kafka's terms: `Stable`, `PreparingRebalance`, `CompletingRebalance`, `Empty`, `Dead`.
    package let state: String
    package let memberIDs: [String]
    /// The error of the group's coordinator, such as while it moves to another broker.
    package var failure: KafkaError?

    /// Whether `memberIDs` is reliable: a coordinator may fail to list them, and describes a group of the new consumer
    /// protocol (KIP-848) as `Dead`, without members, to a client of the classic protocol.
    package var hasReliableMembers: Bool { failure == nil && state != "Dead" }
}

extension ClusterMetadata {
    init(_ metadata: rd_kafka_metadata) {
        let brokers = unsafe UnsafeBufferPointer(start: metadata.brokers, count: Int(metadata.broker_cnt)).map {
            unsafe ClusterMetadata.Broker(id: $0.id, host: String(cString: $0.host), port: $0.port)
        }
        let brokerIDs = Set(brokers.map(\.id))
        self.init(topics: [:], leaderless: [], brokers: brokers)
        unsafe UnsafeBufferPointer(start: metadata.topics, count: Int(metadata.topic_cnt)).forEach { topic in
            let name = unsafe String(cString: topic.topic)
            guard unsafe topic.err == RD_KAFKA_RESP_ERR_NO_ERROR else {
                unsafe refused[name] = KafkaError(topic.err)
                return
            }
            unsafe topics[name] = topic.partition_cnt
            unsafe UnsafeBufferPointer(start: topic.partitions, count: Int(topic.partition_cnt)).forEach { partition in
                let copies = unsafe partition.replica_cnt
                replicas[name] = min(replicas[name] ?? copies, copies)
                let topicPartition = unsafe TopicPartition(topic: name, partition: partition.id)
                if unsafe brokerIDs.contains(partition.leader) {
                    unsafe leaders[topicPartition] = partition.leader
                } else {
                    leaderless.insert(topicPartition)
                }
            }
        }
    }
}

extension Admin {
    /// Returns all topics and brokers. librdkafka may query a broker that does not respond; a retry queries another
    /// one.
    package borrowing func metadata() throws(KafkaError) -> ClusterMetadata {
        try addingRejection { () throws(KafkaError) in try client.metadata(all: true, waitMax: waitMax) }
    }

    /// Returns all topics and brokers; retries with another broker if the first one does not respond.
    ///
    /// Takes at most twice `waitMax`.
    package borrowing func metadataOfAnyBroker() throws(KafkaError) -> ClusterMetadata {
        do {
            return try metadata()
        } catch {
            guard error.isRetriable else { throw error }
            return try metadata()
        }
    }

    /// Returns all consumer groups.
    ///
    /// - Returns: The groups of the brokers that responded, and the error of the others.
    /// - Throws: If no broker responded, or the request is not supported.
    package borrowing func groups() throws(KafkaError) -> (found: [ConsumerGroup], failure: KafkaError?) {
        var pointer: UnsafePointer<rd_kafka_group_list>?
        let code = unsafe rd_kafka_list_groups(client.pointer, nil, &pointer, waitMaxMilliseconds)
        defer { if let pointer = unsafe pointer { unsafe rd_kafka_group_list_destroy(pointer) } }
        var failure: KafkaError?
        if code == RD_KAFKA_RESP_ERR__PARTIAL {
            failure = KafkaError(code, "listing groups: not all brokers responded")
        } else {
            try KafkaError.check(code, "listing groups: \(KafkaError(code).message)")
        }
        guard let list = unsafe pointer?.pointee else { return ([], failure) }
        let groups = unsafe UnsafeBufferPointer(start: list.groups, count: Int(list.group_cnt)).map { group in
            let memberIDs = unsafe UnsafeBufferPointer(start: group.members, count: Int(group.member_cnt)).map {
                unsafe String(cString: $0.member_id)
            }
            return unsafe ConsumerGroup(
                name: String(cString: group.group), state: String(cString: group.state), memberIDs: memberIDs,
                failure: group.err == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(group.err))
        }
        return (groups, failure)
    }
}
