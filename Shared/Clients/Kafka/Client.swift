internal import CKafka
import DequeModule
internal import Glibc
import Synchronization

/// Owns one `rd_kafka_t` and the queue on which it answers.
///
/// A class, because messages keep their client alive: librdkafka waits for ever in `rd_kafka_destroy` while a message
/// is still held. Not `Sendable`: client and messages stay on the thread that made them.
@safe final class Client {
    let pointer: OpaquePointer
    let queue: OpaquePointer
    /// What librdkafka's callbacks point to; outlives the client.
    private let context: ClientContext
    /// librdkafka writes to its descriptor, which must not be closed before the queue forgets it.
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

    /// Left to the end of the process, with all that its callbacks point to, instead of being destroyed.
    ///
    /// librdkafka 2.0.2 aborts the process (`rd_kafka_sticky_assignor_state_destroy: Assertion`) when a consumer is
    /// destroyed while it is joining its group: a service stopped in its first seconds would die by signal 6.
    var isAbandoned = false

    deinit {
        unsafe rd_kafka_queue_io_event_enable(queue, -1, nil, 0)
        if isAbandoned {
            _ = unsafe Unmanaged.passRetained(context)
            return
        }
        unsafe rd_kafka_queue_destroy(queue)
        unsafe EndingClient(pointer: pointer, context: context).end(isConsumer: isConsumer)
    }

    /// The error after which librdkafka does nothing more for this client.
    var fatalError: KafkaError? {
        let text = ErrorText()
        let code = unsafe rd_kafka_fatal_error(pointer, text.pointer, ErrorText.capacity)
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
        return KafkaError(code, text.text, isFatal: true, isRetriable: false)
    }
}

/// What the callbacks of one client leave behind for its owner.
///
/// All but the log is touched only from the thread that polls.
class ClientContext {
    /// Written by librdkafka's own threads, too.
    let logs = LogBuffer()
    /// The last error that was not fatal, and has not been followed by a sign of life since.
    var lastError: KafkaError?
    var refusals = Refusals()
    /// The client told of an error after which it does nothing more; `Client.fatalError` is that error.
    var sawFatal = false
    /// A broker was up when librdkafka last told: at most a second ago, if the client is polled.
    private(set) var isConnected = false
    /// In its first second a client knows nothing of its brokers yet.
    private var hasTold = false

    /// Makes librdkafka call back to this object.
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
            unsafe context.noteStatistics(json)
            return 0  // librdkafka frees the text
        }
    }

    func note(_ error: KafkaError) {
        lastError = error
        refusals.note(error)
        if error.code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN.rawValue { tell(isConnected: false) }
        if error.code == RD_KAFKA_RESP_ERR__FATAL.rawValue { sawFatal = true }
    }

    /// - Parameter json: librdkafka's STATISTICS.md. Only a broker's state is written in capital letters.
    func noteStatistics(_ json: UnsafePointer<CChar>) {
        tell(isConnected: unsafe strstr(json, #""state":"UP""#) != nil)
        if isConnected { lastError = nil }
    }

    private func tell(isConnected: Bool) {
        self.isConnected = isConnected
        hasTold = true
        if isConnected { refusals.connected() }
    }

    /// What a broker refuses, or why none can be reached; `nil` as long as one is connected, or nothing is known yet.
    var connectionProblem: String? {
        if let refusal = refusals.last { return refusal.description }
        return isConnected || !hasTold ? nil : lastError?.description ?? "no broker is connected"
    }
}

/// A line that librdkafka would have written to standard error.
package struct LogLine: Sendable, Equatable {
    /// syslog's level, from 0 (emergency) to 7 (debug).
    package let level: Int32
    /// What it is about, for example `FAIL` or `MAXPOLL`.
    package let facility: String
    package let message: String
}

/// The latest lines; older ones make room.
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
