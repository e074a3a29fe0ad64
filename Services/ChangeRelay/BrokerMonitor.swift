import Essentials
import Kafka
import Synchronization

/// Queries the brokers' topics and partition ends on a separate thread, so that a broker that does not respond delays
/// the next poll but no publishing.
final class BrokerMonitor: Sendable {
    /// The partitions to query.
    struct Query: Sendable {
        /// The last confirmed offset of each partition.
        let confirmed: [TopicPartition: Int64]
        /// Unresponsive partitions, whose leaders may have recovered.
        let unresponsive: Set<TopicPartition>
        /// The PostgreSQL session of the query: after a reconnect the result is ignored.
        let session: Int
    }

    /// The result of one poll of the brokers.
    struct Sample: Sendable {
        let query: Query
        let metadata: ClusterMetadata
        /// The offsets after the last messages, without partitions whose leaders did not respond.
        let ends: [TopicPartition: Int64]
        /// Brokers that did not respond in time, with the error.
        let silent: [Int32: KafkaError]
    }

    /// The timeout of one request. A poll sends at most two to the cluster, and then one concurrent request to each
    /// leader.
    private static let waitMax = Duration.seconds(2)

    private struct State {
        var query: Query?
        var result: Result<Sample, KafkaError>?
        var isPending = false
        var isStopped = false
    }

    /// The state that the thread shares with the relay; it outlives the relay until a poll has ended.
    private final class Mailbox: Sendable {
        let state = Mutex(State())
        let wakeup: Wakeup
        init() throws(KafkaError) { wakeup = try .make() }
    }

    private let mailbox: Mailbox

    /// - Throws: If the process has no free file descriptor.
    init(brokers: String, properties: [String: String]) throws(KafkaError) {
        let mailbox = try Mailbox()
        self.mailbox = mailbox
        startThread(named: "broker-monitor") { Self.run(mailbox, brokers, properties) }
    }

    deinit {
        mailbox.state.withLock { $0.isStopped = true }
        mailbox.wakeup.signal()
    }

    /// Whether a query is in progress or its result was not taken yet.
    var isPending: Bool { mailbox.state.withLock(\.isPending) }

    func submit(_ query: Query) {
        mailbox.state.withLock { state in
            state.query = query
            state.isPending = true
        }
        mailbox.wakeup.signal()
    }

    /// Returns the result of the query, once.
    func takeResult() -> Result<Sample, KafkaError>? {
        mailbox.state.withLock { state in
            if state.result != nil { state.isPending = false }
            return state.result.take()
        }
    }

    private static func run(_ mailbox: Mailbox, _ brokers: String, _ properties: [String: String]) {
        while !mailbox.state.withLock(\.isStopped) {
            do throws(KafkaError) {
                try serve(mailbox, try Admin(brokers: brokers, properties: properties, waitMax: waitMax))
            } catch {
                // The process may lack threads or file descriptors: retry.
                complete(mailbox, .failure(error))
                mailbox.wakeup.wait(atMost: .seconds(1))
            }
        }
    }

    /// Executes queries until the relay has ended.
    private static func serve(_ mailbox: Mailbox, _ admin: borrowing Admin) throws(KafkaError) {
        while true {
            let (query, isStopped) = mailbox.state.withLock { ($0.query.take(), $0.isStopped) }
            if isStopped { return }
            if let query {
                complete(mailbox, Result { () throws(KafkaError) in try sample(admin, query) })
            } else {
                mailbox.wakeup.wait(atMost: .seconds(60))
            }
        }
    }

    private static func complete(_ mailbox: Mailbox, _ result: Result<Sample, KafkaError>) {
        mailbox.state.withLock { $0.result = result }
    }

    private static func sample(_ admin: borrowing Admin, _ query: Query) throws(KafkaError) -> Sample {
        let metadata = try admin.metadataOfAnyBroker()
        let partitions = query.unresponsive.union(query.confirmed.keys)
        let result = admin.offsetsByLeader(at: .end, of: partitions, metadata)
        return Sample(query: query, metadata: metadata, ends: result.offsets, silent: result.silent)
    }
}
