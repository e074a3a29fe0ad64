internal import CKafka

/// A topic to create.
package struct NewTopic: Sendable {
    package let name: String
    package let partitions: Int32
    /// Copies of each partition; -1 leaves it to the broker.
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

/// What became of a topic that should be created.
package enum TopicCreation: Equatable, Sendable {
    case created
    /// It is there, maybe with other partitions or settings: look at `metadata`.
    case existed
    case failed(KafkaError)
}

/// Questions and orders about the cluster. Every call waits for the answer, at most `waitMax`.
///
/// A request that the broker does not know (the mock cluster: CreateTopics, ListGroups) throws an error with
/// `isNotSupported`, whose message says so.
package struct Admin: ~Copyable {
    let client: Client
    private let context = ClientContext()
    let coordinators: CoordinatorClient
    let waitMax: Duration

    /// - Throws: For a property that librdkafka does not know; the message names it. Brokers that do not answer are
    ///   no error here.
    package init(
        brokers: String, properties: [String: String] = [:], waitMax: Duration = .seconds(10)
    ) throws(KafkaError) {
        // A broker that hangs loses its connection before the caller stops waiting: the retry queries another one.
        let answerMax = min(max(waitMax.millisecondsRoundedUp / 5 * 4, 10), 60_000)
        client = try Client(
            RD_KAFKA_PRODUCER,
            ClientProperties(
                brokers: brokers, defaults: ["socket.timeout.ms": String(answerMax)], overrides: properties),
            context: context, wakeup: nil)
        coordinators = CoordinatorClient(brokers: brokers, properties: properties)
        self.waitMax = waitMax
    }

    /// librdkafka's log since the last call; at most the latest 1,000 lines.
    package mutating func takeLogs() -> [LogLine] { context.logs.take() }

    var waitMaxMilliseconds: Int32 { waitMax.millisecondsRoundedUp }

    /// A question that is not answered says so; why, the client tells beside it.
    borrowing func explaining<Success: ~Copyable>(
        _ body: () throws(KafkaError) -> Success
    ) throws(KafkaError) -> Success {
        do {
            let answer = try body()
            context.refusals.served()
            return answer
        } catch {
            while unsafe rd_kafka_poll(client.pointer, 0) > 0 {}
            throw error.advice == nil ? context.refusals.last ?? error : error
        }
    }

    /// Creates topics; one that exists is left as it is.
    ///
    /// - Returns: By topic, what became of it.
    /// - Throws: When the broker did not answer, or does not know the request.
    package borrowing func createTopics(_ topics: [NewTopic]) throws(KafkaError) -> [String: TopicCreation] {
        try checkHasController("creating topics is not supported")
        let requests = try NewTopicHandles(topics)
        let options = try unsafe AdminOptions(client.pointer, RD_KAFKA_ADMIN_OP_CREATETOPICS, waitMaxMilliseconds)
        let queue = AnswerQueue(client)
        unsafe requests.withPointers {
            unsafe rd_kafka_CreateTopics(client.pointer, $0.baseAddress, $0.count, options.pointer, queue.pointer)
        }
        let answer = try queue.answer(waitMaxMilliseconds)
        var count = 0
        let result = unsafe rd_kafka_event_CreateTopics_result(answer.pointer)
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

    /// The controller makes topics and partitions, and tells of them; without one, librdkafka would only say that it
    /// waited.
    borrowing func checkHasController(_ problem: String) throws(KafkaError) {
        let brokers = try metadata().brokers
        let controller = unsafe rd_kafka_controllerid(client.pointer, min(waitMaxMilliseconds, 2000))
        guard !brokers.contains(where: { $0.id == controller }) else { return }
        throw KafkaError(
            RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE,
            "\(problem) by a cluster without a controller (librdkafka's mock cluster has none)")
    }

    /// The offsets of the partition's first message and after its last one.
    package borrowing func watermarks(_ partition: TopicPartition) throws(KafkaError) -> Range<Int64> {
        try explaining { () throws(KafkaError) in try client.range(of: partition, waitMax: waitMax) }
    }
}
