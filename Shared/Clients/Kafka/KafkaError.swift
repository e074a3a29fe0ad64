internal import CKafka

/// An error of Kafka or librdkafka, in librdkafka's terms.
package struct KafkaError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The number of `rd_kafka_resp_err_t`: negative for librdkafka's own errors, positive for a broker's.
    package let code: Int32
    /// The name of `code`, for example `_QUEUE_FULL` or `UNKNOWN_TOPIC_OR_PART`.
    package let name: String
    /// A one-line description with the property, topic or broker concerned.
    package let message: String
    /// Whether the client cannot continue and must be replaced.
    package let isFatal: Bool
    /// Whether the same call may succeed later.
    package let isRetriable: Bool

    package var description: String { "\(name): \(message)" + (advice.map { "; \($0)" } ?? "") }

    /// The required manual action; `nil` if the error may resolve itself.
    package var advice: String? { Self.advices[code] }

    /// Whether the broker does not support the request, as librdkafka's mock cluster does not support CreateTopics or
    /// ListGroups.
    package var isNotSupported: Bool {
        code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE.rawValue
            || code == RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION.rawValue
    }

    /// Whether librdkafka rejected its configuration or a parameter: a retry would fail too.
    package var isInvalidArgument: Bool { code == RD_KAFKA_RESP_ERR__INVALID_ARG.rawValue }

    /// Whether a request or a message timed out.
    package var isTimeout: Bool {
        code == RD_KAFKA_RESP_ERR__TIMED_OUT.rawValue || code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT.rawValue
    }
}

extension KafkaError {
    /// Creates a timeout.
    package init(timeout message: String) { self.init(RD_KAFKA_RESP_ERR__TIMED_OUT, message) }

    /// Creates the error for topics that do not exist.
    package init(missing topics: [String]) {
        self.init(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "topics do not exist: \(topics.joined(separator: ", "))")
    }

    init(_ code: rd_kafka_resp_err_t, _ message: String? = nil, isFatal: Bool = false, isRetriable: Bool? = nil) {
        self.code = code.rawValue
        name = unsafe String(cString: rd_kafka_err2name(code))
        self.message = unsafe message ?? String(cString: rd_kafka_err2str(code))
        self.isFatal = isFatal
        self.isRetriable = isRetriable ?? Self.retriableCodes.contains(code.rawValue)
    }

    /// Reads and frees `error`.
    init(consuming error: OpaquePointer) {
        code = unsafe rd_kafka_error_code(error).rawValue
        name = unsafe String(cString: rd_kafka_error_name(error))
        message = unsafe String(cString: rd_kafka_error_string(error))
        isFatal = unsafe rd_kafka_error_is_fatal(error) != 0
        isRetriable = unsafe rd_kafka_error_is_retriable(error) != 0
        unsafe rd_kafka_error_destroy(error)
    }

    static func check(_ code: rd_kafka_resp_err_t, _ message: String? = nil) throws(KafkaError) {
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        throw KafkaError(code, message)
    }

    /// Returns an error's text without its variable part: librdkafka appends the time that the connection was in its
    /// state and the number of suppressed identical errors, as in "(after 3ms in state AUTH_REQ, 4 identical error(s)
    /// suppressed)". Identical errors then have identical texts and are logged once.
    static func constant(_ text: String) -> String {
        guard text.hasSuffix(")"), let range = text.firstRange(of: " (after ") else { return text }
        return String(text[..<range.lowerBound])
    }

    /// Retriable codes; errors with an `rd_kafka_error_t` have their own flag.
    private static let retriableCodes: Set<Int32> = Set(
        [
            RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__TIMED_OUT,
            RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__QUEUE_FULL, RD_KAFKA_RESP_ERR__WAIT_COORD,
            RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, RD_KAFKA_RESP_ERR__STATE, RD_KAFKA_RESP_ERR__PREV_IN_PROGRESS,
            RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
            RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
            RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
            RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION,
        ].map(\.rawValue))

    private static let advices: [Int32: String] = {
        let login = "check kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password"
        let transport = "check kafka.security.protocol and the certificates of kafka.ssl.…"
        let topic = "create it with fieldpost topics apply, and authorize this client to describe it"
        // Larger than any object: see EventSizeTests.
        let size =
            "messages of 1,000,000 bytes must be allowed: raise the topic's max.message.bytes or the broker's "
            + "message.max.bytes, and kafka.message.max.bytes where it is set"
        let pairs: [(rd_kafka_resp_err_t, String)] = [
            (RD_KAFKA_RESP_ERR__AUTHENTICATION, login), (RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, login),
            (RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, login), (RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE, login),
            (RD_KAFKA_RESP_ERR__SSL, transport), (RD_KAFKA_RESP_ERR_SECURITY_DISABLED, transport),
            (RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, topic), (RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, topic),
            (RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, topic),
            (RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, size), (RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, size),
            (RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "grant this client access to the topic"),
            (RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, "grant this client access to the consumer group"),
            (RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, "grant this client IdempotentWrite, and Describe"),
        ]
        return Dictionary(pairs.map { ($0.rawValue, $1) }, uniquingKeysWith: { first, _ in first })
    }()

    /// Whether the error concerns a connection, not a request: it is resolved as soon as a broker is connected.
    var isOfConnection: Bool {
        switch rd_kafka_resp_err_t(code) {
        case RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
            RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM, RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE,
            RD_KAFKA_RESP_ERR__SSL, RD_KAFKA_RESP_ERR_SECURITY_DISABLED:
            true
        default: false
        }
    }
}
