import Kafka
import ServiceRuntime
import Synchronization

/// Queries the brokers on a thread of its own: which topics they have, and how far partitions reach. A broker that does
/// not answer delays the next poll, and no publishing.
final class BrokerWatch: Sendable {
    /// The partitions to query.
    struct Question: Sendable {
        /// The last confirmed offset of each partition.
        let confirmed: [TopicPartition: Int64]
        /// Partitions whose leader may answer again.
        let silenced: Set<TopicPartition>
        /// The PostgreSQL session of the query: after a reconnect the result is ignored.
        let session: Int
    }

    /// The result of one poll of the brokers.
    struct Look: Sendable {
        let question: Question
        let metadata: ClusterMetadata
        /// The offsets after the last messages; without those whose leaders did not return them.
        let ends: [TopicPartition: Int64]
        /// Brokers that did not answer in time, with the error.
        let silent: [Int32: KafkaError]
    }

    /// The timeout of one request. A poll sends at most two to the cluster, and then one to each leader, several at a
    /// time.
    private static let waitMax = Duration.seconds(2)

    private struct State {
        var question: Question?
        var answer: Result<Look, KafkaError>?
        var isAsked = false
        var isOver = false
    }

    /// The state that the thread shares with the relay; it outlives the relay until a poll has ended.
    private final class Mailbox: Sendable {
        let state = Mutex(State())
        let wakeup: Wakeup
        init() throws(KafkaError) { wakeup = try Wakeup() }
    }

    private let mailbox: Mailbox

    /// - Throws: When the process has no file descriptor left.
    init(brokers: String, properties: [String: String]) throws(KafkaError) {
        let mailbox = try Mailbox()
        self.mailbox = mailbox
        startThread(named: "broker-watch") { Self.run(mailbox, brokers, properties) }
    }

    deinit {
        mailbox.state.withLock { $0.isOver = true }
        mailbox.wakeup.signal()
    }

    /// Whether an answer is still to come or to be taken.
    var isAsked: Bool { mailbox.state.withLock(\.isAsked) }

    func ask(_ question: Question) {
        mailbox.state.withLock { state in
            state.question = question
            state.isAsked = true
        }
        mailbox.wakeup.signal()
    }

    /// The answer, once.
    func takeAnswer() -> Result<Look, KafkaError>? {
        mailbox.state.withLock { state in
            if state.answer != nil { state.isAsked = false }
            return state.answer.take()
        }
    }

    private static func run(_ mailbox: Mailbox, _ brokers: String, _ properties: [String: String]) {
        while !mailbox.state.withLock(\.isOver) {
            do throws(KafkaError) {
                try serve(mailbox, try Admin(brokers: brokers, properties: properties, waitMax: waitMax))
            } catch {
                // The process may be short of threads or file descriptors: retried.
                answer(mailbox, .failure(error))
                wait(mailbox, atMost: .seconds(1))
            }
        }
    }

    /// Answers questions until the relay has ended.
    private static func serve(_ mailbox: Mailbox, _ admin: borrowing Admin) throws(KafkaError) {
        while true {
            let (question, isOver) = mailbox.state.withLock { ($0.question.take(), $0.isOver) }
            if isOver { return }
            if let question {
                answer(mailbox, Result { () throws(KafkaError) in try look(admin, question) })
            } else {
                wait(mailbox, atMost: .seconds(60))
            }
        }
    }

    private static func wait(_ mailbox: Mailbox, atMost limit: Duration) {
        mailbox.wakeup.wait(atMost: limit)
        mailbox.wakeup.drain()
    }

    private static func answer(_ mailbox: Mailbox, _ answer: Result<Look, KafkaError>) {
        mailbox.state.withLock { $0.answer = answer }
    }

    private static func look(_ admin: borrowing Admin, _ question: Question) throws(KafkaError) -> Look {
        let metadata = try admin.metadataOfAnyBroker()
        let wanted = question.silenced.union(question.confirmed.keys)
        let found = admin.offsetsByLeader(at: .end, of: wanted, metadata)
        return Look(question: question, metadata: metadata, ends: found.offsets, silent: found.silent)
    }
}
