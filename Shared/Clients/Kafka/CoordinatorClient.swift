internal import CKafka

/// Sends requests that the coordinators of groups answer (OffsetFetch, OffsetCommit), one for each group.
///
/// Two faults of librdkafka, in 2.0.2 as in 2.8, end the process; this type never meets their conditions:
/// - A request that times out before its coordinator is connected is used after it was freed, as soon as the
///   coordinator connects. So no request times out inside librdkafka: the caller stops waiting earlier, and the client
///   is closed then, which ends all of its requests.
/// - A client without a group dereferences a null pointer when a broker answers NOT_COORDINATOR. So the client is a
///   consumer with a group id. It never subscribes, so it is no member of the group.
final class CoordinatorClient {
    /// The longest that librdkafka accepts, and longer than any caller waits.
    private static let requestMaxMilliseconds: Int32 = 3_600_000

    private let brokers: String
    private let properties: [String: String]
    private var open: (client: Client, context: ClientContext)?

    init(brokers: String, properties: [String: String]) {
        self.brokers = brokers
        self.properties = properties
    }

    /// Sends one request for each group, all at a time, and waits for the answers.
    ///
    /// A client that connected earlier may have cached coordinators that moved since: the groups whose request failed
    /// are requested again through a new client, if time is left.
    ///
    /// - Parameters:
    ///   - operation: The kind of request.
    ///   - send: Starts the request of a group.
    ///   - read: Reads an answer that is no error.
    /// - Returns: By group, the answer or why there is none.
    /// - Throws: For a property that librdkafka does not accept.
    func request<Value>(
        _ operation: rd_kafka_admin_op_t, of groups: [String], waitMax: Duration,
        send: (_ group: String, Client, borrowing AdminOptions, borrowing AnswerQueue) -> Void,
        read: (borrowing Answer) throws(KafkaError) -> Value
    ) throws(KafkaError) -> [String: Result<Value, KafkaError>] {
        let deadline = ContinuousClock.now + waitMax
        var found: [String: Result<Value, KafkaError>] = [:]
        var missing = groups
        while let first = missing.first {
            let isNew = open == nil
            let (client, context) = try client(of: first)
            let queue = AnswerQueue(client)
            for (index, group) in missing.enumerated() {
                let options = try unsafe AdminOptions(client.pointer, operation, Self.requestMaxMilliseconds)
                unsafe rd_kafka_AdminOptions_set_opaque(options.pointer, UnsafeMutableRawPointer(bitPattern: index + 1))
                send(group, client, options, queue)
            }
            var answerCount = 0
            while answerCount < missing.count, let answer = queue.next(until: deadline) {
                let index = unsafe Int(bitPattern: rd_kafka_event_opaque(answer.pointer)) - 1
                guard missing.indices.contains(index) else { continue }
                answerCount += 1
                do throws(KafkaError) {
                    try answer.check()
                    found[missing[index]] = .success(try read(answer))
                } catch {
                    found[missing[index]] = .failure(error)
                }
            }
            while unsafe rd_kafka_poll(client.pointer, 0) > 0 {}
            let silence = context.refusals.last ?? KafkaError(timeout: "the group's coordinator does not answer")
            for group in missing where found[group] == nil { found[group] = .failure(silence) }
            let isWhole = answerCount == missing.count
            missing = missing.filter { if case .failure(let error)? = found[$0] { error.isRetriable } else { false } }
            if !isWhole || !missing.isEmpty { open = nil }
            if isNew || ContinuousClock.now >= deadline { break }
        }
        return found
    }

    /// - Parameter group: What a new client has as its group id: one that its owner needs access to in any case.
    private func client(of group: String) throws(KafkaError) -> (client: Client, context: ClientContext) {
        if let open { return open }
        let own = ["group.id": group, "enable.auto.commit": "false"]
        let context = ClientContext()
        let client = try Client(
            RD_KAFKA_CONSUMER,
            ClientProperties(brokers: brokers, defaults: [:], overrides: properties.merging(own) { $1 }),
            context: context, wakeup: nil)
        open = (client, context)
        return (client, context)
    }
}

extension AnswerQueue {
    /// Waits for the next answer; `nil` when none arrives until `deadline`.
    fileprivate func next(until deadline: ContinuousClock.Instant) -> Answer? {
        let wait = max(.zero, deadline - .now).millisecondsRoundedUp
        guard let event = unsafe rd_kafka_queue_poll(pointer, wait) else { return nil }
        return unsafe Answer(pointer: event)
    }
}

extension Answer {
    /// - Throws: What the broker refused.
    fileprivate borrowing func check() throws(KafkaError) {
        let text = unsafe rd_kafka_event_error_string(pointer).map { unsafe String(cString: $0) }
        try KafkaError.check(unsafe rd_kafka_event_error(pointer), text)
    }
}
