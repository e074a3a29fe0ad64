internal import CKafka

/// A topic to create.
package struct NewTopic: Sendable {
    package let name: String
    package let partitions: Int32
    /// The number of replicas of each partition; -1 for the broker's default.
    package let replication: Int32
    /// Kafka's topic settings, for example `retention.ms`.
    package let configuration: [String: String]

    package init(name: String, partitions: Int32, replication: Int32 = -1, configuration: [String: String] = [:]) {
        self.name = name
        self.partitions = partitions
        self.replication = replication
        self.configuration = configuration
    }
}

/// The result of creating a topic.
package enum TopicCreation: Equatable, Sendable {
    case created
    /// The topic already exists, possibly with other partitions or settings: see `metadata`.
    case existed
    case failed(KafkaError)
}

/// A client for administrative requests. Every call blocks until the response, at most `waitMax`.
///
/// A request that the broker does not support (the mock cluster: CreateTopics, ListGroups) throws an error whose
/// `isNotSupported` is true.
package struct Admin: ~Copyable {
    let client: Client
    private let context = ClientContext()
    let coordinators: CoordinatorClient
    let waitMax: Duration

    /// - Throws: If librdkafka does not support a property, which the message names. Unavailable brokers are not an
    ///   error here.
    package init(
        brokers: String, properties: [String: String] = [:], waitMax: Duration = .seconds(10)
    ) throws(KafkaError) {
        // The connection to a hanging broker times out before `waitMax`, so that the retry queries another broker.
        let responseMax = min(max(waitMax.millisecondsRoundedUp / 5 * 4, 10), 60_000)
        client = try Client(
            RD_KAFKA_PRODUCER,
            ClientProperties(
                brokers: brokers, defaults: ["socket.timeout.ms": String(responseMax)], overrides: properties),
            context: context, wakeup: nil)
        coordinators = CoordinatorClient(brokers: brokers, properties: properties)
        self.waitMax = waitMax
    }

    var waitMaxMilliseconds: Int32 { waitMax.millisecondsRoundedUp }

    /// Replaces a timeout by the broker rejection that caused it, which librdkafka reports separately.
    borrowing func addingRejection<Success: ~Copyable>(
        _ body: () throws(KafkaError) -> Success
    ) throws(KafkaError) -> Success {
        do {
            let response = try body()
            context.rejections.served()
            return response
        } catch {
            while unsafe rd_kafka_poll(client.pointer, 0) > 0 {}
            throw error.advice == nil ? context.rejections.last ?? error : error
        }
    }

    /// Creates topics; existing ones are not changed.
    ///
    /// - Returns: The result by topic.
    /// - Throws: If the broker does not respond, or the request is not supported.
    package borrowing func createTopics(_ topics: [NewTopic]) throws(KafkaError) -> [String: TopicCreation] {
        try requireController("creating topics is not supported")
        let requests = try NewTopicHandles(topics)
        let options = try unsafe AdminOptions(client.pointer, RD_KAFKA_ADMIN_OP_CREATETOPICS, waitMaxMilliseconds)
        let queue = ResponseQueue(client)
        unsafe requests.withPointers {
            unsafe rd_kafka_CreateTopics(client.pointer, $0.baseAddress, $0.count, options.pointer, queue.pointer)
        }
        let response = try queue.response(waitMaxMilliseconds)
        var count = 0
        let result = unsafe rd_kafka_event_CreateTopics_result(response.pointer)
        guard let results = unsafe rd_kafka_CreateTopics_result_topics(result, &count) else { return [:] }
        var creations: [String: TopicCreation] = [:]
        for index in 0..<count {
            guard let topic = unsafe results[index] else { continue }
            let name = unsafe String(cString: rd_kafka_topic_result_name(topic))
            let code = unsafe rd_kafka_topic_result_error(topic)
            let text = unsafe rd_kafka_topic_result_error_string(topic).map { unsafe String(cString: $0) }
            creations[name] =
                switch code {
                case RD_KAFKA_RESP_ERR_NO_ERROR: .created
                case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS: .existed
                default: .failed(KafkaError(code, text))
                }
        }
        return creations
    }

    /// Throws if the cluster has no controller, which creates and describes topics; librdkafka would only time out.
    borrowing func requireController(_ problem: String) throws(KafkaError) {
        let brokers = try metadata().brokers
        let controller = unsafe rd_kafka_controllerid(client.pointer, min(waitMaxMilliseconds, 2000))
        guard !brokers.contains(where: { $0.id == controller }) else { return }
        throw KafkaError(
            RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE,
            "\(problem) by a cluster without a controller (librdkafka's mock cluster has none)")
    }
}
