internal import CKafka

/// Sends requests to the coordinators of groups (OffsetFetch, OffsetCommit), one request per group.
///
/// Avoids two defects of librdkafka (2.0.2 to 2.8) that crash the process:
/// - A request that times out before its coordinator is connected is used after it was freed. Therefore requests do not
///   time out inside librdkafka: the caller stops waiting earlier, and closes the client, which ends all its requests.
/// - A client without a group dereferences a null pointer when a broker responds NOT_COORDINATOR. Therefore the client
///   is a consumer with a group id. It never subscribes, so it is not a member of the group.
final class CoordinatorClient {
    /// The maximum that librdkafka accepts, longer than any caller waits.
    private static let requestMaxMilliseconds: Int32 = 3_600_000

    private let brokers: String
    private let properties: [String: String]
    private var open: (client: Client, context: ClientContext)?

    init(brokers: String, properties: [String: String]) {
        self.brokers = brokers
        self.properties = properties
    }

    /// Sends one concurrent request per group and waits for the responses.
    ///
    /// A client that connected earlier may have cached coordinators that have moved since: requests that failed are
    /// retried with a new client before the deadline.
    ///
    /// - Parameters:
    ///   - operation: The kind of request.
    ///   - send: Sends the request of a group.
    ///   - read: Reads a successful response.
    /// - Returns: The response or the error by group.
    /// - Throws: If librdkafka rejects a property.
    func request<Value>(
        _ operation: rd_kafka_admin_op_t, of groups: [String], waitMax: Duration,
        send: (_ group: String, Client, borrowing AdminOptions, borrowing ResponseQueue) -> Void,
        read: (borrowing AdminResponse) throws(KafkaError) -> Value
    ) throws(KafkaError) -> [String: Result<Value, KafkaError>] {
        let deadline = ContinuousClock.now + waitMax
        var results: [String: Result<Value, KafkaError>] = [:]
        var missing = groups
        while let first = missing.first {
            let isNew = open == nil
            let (client, context) = try client(of: first)
            let queue = ResponseQueue(client)
            for (index, group) in missing.enumerated() {
                let options = try unsafe AdminOptions(client.pointer, operation, Self.requestMaxMilliseconds)
                unsafe rd_kafka_AdminOptions_set_opaque(options.pointer, UnsafeMutableRawPointer(bitPattern: index + 1))
                send(group, client, options, queue)
            }
            var responseCount = 0
            while responseCount < missing.count, let response = queue.next(until: deadline) {
                let index = unsafe Int(bitPattern: rd_kafka_event_opaque(response.pointer)) - 1
                guard missing.indices.contains(index) else { continue }
                responseCount += 1
                do throws(KafkaError) {
                    try response.check()
                    results[missing[index]] = .success(try read(response))
                } catch {
                    results[missing[index]] = .failure(error)
                }
            }
            while unsafe rd_kafka_poll(client.pointer, 0) > 0 {}
            let timeout = context.rejections.last ?? KafkaError(timeout: "the group's coordinator does not respond")
            for group in missing where results[group] == nil { results[group] = .failure(timeout) }
            let isComplete = responseCount == missing.count
            missing = missing.filter { if case .failure(let error)? = results[$0] { error.isRetriable } else { false } }
            if !isComplete || !missing.isEmpty { open = nil }
            if isNew || ContinuousClock.now >= deadline { break }
        }
        return results
    }

    /// - Parameter group: The group id of a new client, one that its owner is authorized for in any case.
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

extension ResponseQueue {
    /// Waits for the next response; returns `nil` if none arrives by `deadline`.
    fileprivate func next(until deadline: ContinuousClock.Instant) -> AdminResponse? {
        let wait = max(.zero, deadline - .now).millisecondsRoundedUp
        guard let event = unsafe rd_kafka_queue_poll(pointer, wait) else { return nil }
        return unsafe AdminResponse(pointer: event)
    }
}
