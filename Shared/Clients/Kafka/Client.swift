internal import CKafka
import DequeModule
import Essentials
internal import Glibc
import Synchronization

/// Owns one `rd_kafka_t` and its event queue.
///
/// A class, so that messages retain their client: `rd_kafka_destroy` blocks while messages exist. Not `Sendable`:
/// client and messages stay on the thread that created them.
@safe final class Client {
    let pointer: OpaquePointer
    let queue: OpaquePointer
    /// The target of librdkafka's callbacks; outlives the client.
    private let context: ClientContext
    /// librdkafka writes to its descriptor, which must stay open until the queue is detached.
    private let wakeup: Wakeup?
    private let isConsumer: Bool

    init(
        _ type: rd_kafka_type_t, _ properties: ClientProperties, context: ClientContext, wakeup: Wakeup?
    ) throws(KafkaError) {
        let configuration = try properties.makeHandle()
        unsafe context.install(in: configuration.pointer)
        let error = ErrorText()
        guard
            let pointer = unsafe rd_kafka_new(type, configuration.pointer, error.pointer, ErrorText.capacity)
        else { throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, error.text) }
        configuration.relinquish()

        if type == RD_KAFKA_CONSUMER { unsafe rd_kafka_poll_set_consumer(pointer) }
        let queue =
            type == RD_KAFKA_CONSUMER
            ? unsafe rd_kafka_queue_get_consumer(pointer) : unsafe rd_kafka_queue_get_main(pointer)
        guard let queue = unsafe queue else {
            unsafe rd_kafka_destroy(pointer)
            throw KafkaError(RD_KAFKA_RESP_ERR__STATE, "the client has no queue")
        }
        unsafe self.pointer = pointer
        unsafe self.queue = queue
        self.context = context
        self.wakeup = wakeup
        isConsumer = type == RD_KAFKA_CONSUMER
        if let wakeup { unsafe wakeup.attach(to: queue) }
    }

    /// Whether the client and its callbacks' context are leaked until the process exits, instead of being destroyed.
    ///
    /// librdkafka 2.0.2 aborts (`rd_kafka_sticky_assignor_state_destroy: Assertion`) when a consumer is destroyed while
    /// it joins its group: a service stopped in its first seconds would exit with signal 6.
    var isAbandoned = false

    deinit {
        unsafe rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
        if isAbandoned {
            _ = unsafe Unmanaged.passRetained(context)
            return
        }
        unsafe rd_kafka_queue_destroy(queue)
        unsafe ClientDestruction(pointer: pointer, context: context).run(isConsumer: isConsumer)
    }

    /// The error after which librdkafka no longer operates this client.
    var fatalError: KafkaError? {
        let text = ErrorText()
        let code = unsafe rd_kafka_fatal_error(pointer, text.pointer, ErrorText.capacity)
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return KafkaError(code, text.text, isFatal: true, isRetriable: false)
    }
}

/// The state that the callbacks of one client leave for its owner.
///
/// Except for the log, accessed only from the thread that polls.
class ClientContext {
    /// Also appended to by librdkafka's own threads.
    let logs = LogBuffer()
    /// The last non-fatal error, cleared when a broker is connected.
    var lastError: KafkaError?
    var rejections = BrokerRejections()
    /// Whether librdkafka reported a fatal error; `Client.fatalError` returns it.
    var sawFatal = false
    /// Whether a broker was up in the latest statistics, which are at most one second old while the client is polled.
    private(set) var isConnected = false
    /// False in the first second, before the first statistics.
    private var hasReported = false

    /// Registers this object as the target of librdkafka's callbacks.
    func install(in configuration: OpaquePointer) {
        unsafe rd_kafka_conf_set_opaque(configuration, Unmanaged.passUnretained(self).toOpaque())
        unsafe rd_kafka_conf_set_log_cb(configuration) { client, level, facility, text in
            guard let client = unsafe client, let opaque = unsafe rd_kafka_opaque(client) else { return }
            guard let facility = unsafe facility, let text = unsafe text else { return }
            let line = unsafe LogLine(
                level: level, facility: String(cString: facility), message: String(cString: text))
            unsafe Unmanaged<ClientContext>.fromOpaque(opaque).takeUnretainedValue().logs.append(line)
        }
        unsafe rd_kafka_conf_set_error_cb(configuration) { _, code, text, opaque in
            guard let opaque = unsafe opaque else { return }
            let context = unsafe Unmanaged<ClientContext>.fromOpaque(opaque).takeUnretainedValue()
            let message = unsafe text.map { KafkaError.constant(unsafe String(cString: $0)) }
            context.note(KafkaError(rd_kafka_resp_err_t(code), message))
        }
        unsafe rd_kafka_conf_set_stats_cb(configuration) { _, json, _, opaque in
            guard let json = unsafe json, let opaque = unsafe opaque else { return 0 }
            let context = unsafe Unmanaged<ClientContext>.fromOpaque(opaque).takeUnretainedValue()
            unsafe context.readStatistics(json)
            return 0  // librdkafka frees the text
        }
    }

    func note(_ error: KafkaError) {
        lastError = error
        rejections.note(error)
        if error.code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN.rawValue { report(isConnected: false) }
        if error.code == RD_KAFKA_RESP_ERR__FATAL.rawValue { sawFatal = true }
    }

    /// - Parameter json: See librdkafka's STATISTICS.md. Only a broker's state is in capital letters.
    func readStatistics(_ json: UnsafePointer<CChar>) {
        report(isConnected: unsafe strstr(json, #""state":"UP""#) != nil)
        if isConnected { lastError = nil }
    }

    private func report(isConnected: Bool) {
        self.isConnected = isConnected
        hasReported = true
        if isConnected { rejections.connected() }
    }

    /// The broker's rejection or the reason why no broker is connected; `nil` while one is connected or the state is
    /// unknown.
    var connectionProblem: String? {
        if let refusal = rejections.last { return refusal.description }
        return isConnected || !hasReported ? nil : lastError?.description ?? "no broker is connected"
    }
}

/// A line of librdkafka's log.
package struct LogLine: Sendable, Equatable {
    /// syslog's level, from 0 (emergency) to 7 (debug).
    package let level: Int32
    /// The subject, such as `FAIL` or `MAXPOLL`.
    package let facility: String
    package let message: String
}

/// The latest lines; the oldest ones are dropped.
final class LogBuffer: Sendable {
    private static let countMax = 1000
    private let lines = Mutex<Deque<LogLine>>([])

    func append(_ line: LogLine) {
        lines.withLock {
            if $0.count == Self.countMax { $0.removeFirst() }
            $0.append(line)
        }
    }

    func take() -> [LogLine] {
        lines.withLock { lines in
            defer { lines = [] }
            return Array(lines)
        }
    }
}
