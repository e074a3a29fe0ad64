import Essentials
import FoundationEssentials
import Kafka
import Logging
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

let deadlineMax = patienceMax

struct WaitTimeout: Error {
    let what: String
}

/// Low group timings: the mock cluster's first join takes 3 s, a rebalance the session timeout less 1 s.
let fastGroup = [
    "session.timeout.ms": "4000", "heartbeat.interval.ms": "100", "auto.commit.interval.ms": "100",
    "reconnect.backoff.max.ms": "100", "fetch.wait.max.ms": "10",
]

let partitionCounts = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// A database with one environment, a broker, and operations on them.
struct Flow: ~Copyable {
    let cluster: MockCluster
    let conninfo: String
    var connection: Connection
    var directory = RealmDirectory()
    let environment: EnvironmentID

    init(_ cluster: MockCluster) throws {
        let conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        let rows = try connection.run("INSERT INTO realm.environment (name) VALUES ('acme') RETURNING id")
        let environment = EnvironmentID(rawValue: try rows[0].value(0))
        self.cluster = cluster
        self.conninfo = conninfo
        self.environment = environment
        self.connection = connection
    }

    mutating func key(_ realm: RealmPath, _ kind: Kind, _ id: UUID) throws -> ObjectKey {
        let number = try directory.id(of: realm, in: environment, create: true, on: &connection)
        return ObjectKey(realm: try #require(number), kind: kind, id: id)
    }

    @discardableResult
    mutating func put(_ key: ObjectKey, _ json: String, isEdit: Bool = false) throws -> Int64? {
        var batch = WriteBatch(environment: environment)
        batch.trace(TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), decision: 0)
        batch.put(key, try CanonicalJSON(json), decision: 0, isEdit: isEdit)
        return try batch.commit(on: &connection).positions[key]
    }

    mutating func delete(_ key: ObjectKey) throws -> Int64? {
        var batch = WriteBatch(environment: environment)
        batch.delete(key, decision: 0)
        return try batch.commit(on: &connection).positions[key]
    }

    /// `realm.relay`'s row: epoch, published epoch, position; zeros before there is one.
    mutating func relayed() throws -> (epoch: Int64, publishedEpoch: Int64, position: Int64) {
        let rows = try connection.run(
            "SELECT epoch, published_epoch, position FROM realm.relay WHERE environment_id = \(environment.rawValue)")
        guard rows.count == 1 else { return (0, 0, 0) }
        return (try rows[0].value(0), try rows[0].value(1), try rows[0].value(2))
    }

    mutating func counter() throws -> Int64 {
        try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0].value(0)
    }

    borrowing func makeRelay(
        pageCountMax: Int = 100, logger: Logger = quiet, brokers: String? = nil
    ) throws -> Relay {
        try Relay(
            conninfo: conninfo, brokers: brokers ?? cluster.address, properties: ["reconnect.backoff.max.ms": "100"],
            logger: logger, pageCountMax: pageCountMax)
    }

    /// Runs relays until `isDone`, as the runtime does: a relay that failed is re-created.
    mutating func publish(_ what: String, until isDone: (inout Flow) throws -> Bool) throws {
        let end = ContinuousClock.now + deadlineMax
        while true {
            do {
                var relay = try makeRelay()
                while try !isDone(&self) {
                    guard ContinuousClock.now < end else { throw WaitTimeout(what: what) }
                    _ = try relay.step(waitMax: .milliseconds(5))
                }
                return
            } catch let error as WaitTimeout {
                throw error
            } catch is Relay.ContentLost {
            } catch is KafkaError {
            }
        }
    }

    /// Publishes all changes.
    mutating func publishAll() throws {
        try publish("publishing all") { flow in
            let (epoch, publishedEpoch, position) = try flow.relayed()
            return try position == flow.counter() && epoch == publishedEpoch && epoch > 0
        }
    }

    /// Reads a topic from its beginning, as a separate group.
    func read(_ topic: Topic, countMin: Int) throws -> [Message] {
        var consumer = try Consumer(
            brokers: cluster.address, group: "reader-\(UUID())", topics: [topic.name], properties: fastGroup)
        var messages: [Message] = []
        try wait("reading \(countMin) messages") {
            messages += try consumer.nextBatch(countMax: 1_000, waitMax: .milliseconds(50))
            return messages.count >= countMin
        }
        // Unexpected messages would arrive with the next batches.
        for _ in 0..<5 { messages += try consumer.nextBatch(countMax: 1_000, waitMax: .milliseconds(50)) }
        return messages
    }
}

/// Repeats `step` until it returns `true`.
func wait(_ what: String, _ step: () throws -> Bool) throws {
    let end = ContinuousClock.now + deadlineMax
    while try !step() {
        guard ContinuousClock.now < end else { throw WaitTimeout(what: what) }
    }
}

/// The keys that a handler under test has decided.
final class DecidedKeys: Sendable {
    private let counts = Mutex<[UUID: Int]>([:])
    func record(_ id: UUID) { counts.withLock { $0[id, default: 0] += 1 } }
    func removeAll() { counts.withLock { $0 = [:] } }
    var ids: Set<UUID> { counts.withLock { Set($0.keys) } }
}

/// Records each key and finishes it.
struct RecordingHandler: Handler {
    let seen: DecidedKeys

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        inputs.map { input in
            seen.record(input.subject.id)
            return .finished
        }
    }
}
