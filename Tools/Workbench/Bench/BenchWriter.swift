import Access
import Algorithms
import Essentials
import FoundationEssentials
import Kafka
import KeyedWorker
import LocalCluster
import Model
import ObjectStore
import Postgres

/// Writes objects as devices do, and publishes them as the relay does.
final class BenchWriter {
    /// An object, and the path of its realm.
    struct Source {
        let path: RealmPath
        let key: ObjectKey
    }

    private var connection: Connection
    private var producer: Producer
    private var events: EventWriter
    private var directory = RealmDirectory()
    let environment: EnvironmentID
    let common: Int32
    let manager: Int32

    /// The number of decisions per transaction of a worker.
    static let batchCount = 500
    /// The number of objects written or read per transaction.
    private static let pageCount = 5_000

    init(_ installation: BenchInstallation) throws {
        environment = installation.environment
        var connection = try Connection(installation.cluster.conninfo)
        let realms = try directory.ids(of: [.common, .manager], in: environment, create: true, on: &connection)
        (common, manager) = (realms[.common] ?? 0, realms[.manager] ?? 0)
        events = EventWriter(environment: environment, generation: 1, epoch: 1)
        // The mock cluster responds to a Fetch with one batch of each partition: small ones would limit the consumer.
        producer = try Producer(brokers: installation.cluster.brokers, properties: ["linger.ms": "200"])
        self.connection = connection
    }

    /// Creates realms.
    func realms(_ paths: [RealmPath]) throws -> [RealmPath: Int32] {
        try directory.ids(of: paths, in: environment, create: true, on: &connection)
    }

    /// Registers people.
    ///
    /// - Returns: The ids of their `Person` objects, in the order of the addresses.
    func register(_ emails: [String]) throws -> [UUID] {
        var people: [UUID] = []
        for page in emails.chunks(ofCount: Registration.batchCountMax) {
            try Registration.register(Array(page), in: environment, on: &connection)
            let found = try People.objects(of: Array(page), in: environment, on: &connection)
            let ids = Dictionary(found.map { ($0.email, $0.id) }) { $1 }
            people += page.compactMap { ids[$0] }
        }
        return people
    }

    /// Marks the service's topics as known, so that it does not republish them at its first start.
    func begin(_ service: ServiceDescription) throws {
        for topic in service.topics {
            try connection.run(
                """
                INSERT INTO pipeline.progress (group_name, topic, partition, epoch)
                SELECT \(service.name), \(topic.name), p, 1
                FROM unnest(\((0..<topic.partitions).map(Int32.init))) p
                ON CONFLICT DO NOTHING
                """)
        }
    }

    /// A team without members.
    func team(_ id: UUID) -> (key: ObjectKey, fields: String) {
        (ObjectKey(realm: common, kind: .team, id: id), #"{"name":"Team"}"#)
    }

    func membership(of person: UUID, in team: UUID) -> (key: ObjectKey, fields: String) {
        let key = ObjectKey(realm: common, kind: .membership, id: Membership.id(of: person, in: team))
        return (key, "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}")
    }

    /// Writes objects as edits, and makes a checkpoint.
    func write(_ objects: [(key: ObjectKey, fields: String)]) throws {
        for page in objects.chunks(ofCount: Self.pageCount) {
            var batch = WriteBatch(environment: environment)
            for (key, fields) in page { batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true) }
            _ = try batch.commit(on: &connection)
        }
        try connection.runScript("CHECKPOINT")
    }

    /// The current objects, including tombstones.
    func load(_ keys: [ObjectKey]) throws -> [ObjectKey: RealmObject] {
        var objects: [ObjectKey: RealmObject] = [:]
        for page in keys.chunks(ofCount: Self.pageCount) {
            let rows = try connection.run(RealmObject.load(Array(page), in: environment))
            objects.merge(try RealmObject.byKey(rows)) { $1 }
        }
        return objects
    }

    /// Publishes the current state of objects.
    func publish(_ sources: [Source], to topic: Topic) throws {
        let objects = try load(sources.map(\.key))
        for source in sources {
            guard let object = objects[source.key], let fields = object.fields else { continue }
            let published = PublishedObject(
                realm: source.path, kind: source.key.kind, id: source.key.id, position: object.position,
                editPosition: object.editPosition, time: .now())
            try unsafe fields.bytes.withUnsafeBytes {
                try unsafe events.send(published, to: topic, json: $0, tag: 0, through: &producer)
            }
        }
        guard producer.flush(waitMax: .seconds(120)) else { throw ClusterFailure("producer flush timed out") }
        _ = producer.deliveries(waitMax: .zero)
    }

    /// The position of the environment's counter.
    func position() throws -> Int64 {
        try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0].value(0)
    }

    /// Executes prepared statements, each list as a transaction, after a checkpoint, as before a service's start.
    ///
    /// - Parameter count: The number of positions that they use.
    /// - Returns: Positions per second.
    func rate(of pipelines: [[Statement]], count: Int) throws -> Double {
        try connection.runScript("CHECKPOINT")
        let before = try position()
        let start = ContinuousClock.now
        for pipeline in pipelines { try connection.run(pipeline) }
        let duration = ContinuousClock.now - start
        let written = try position() - before
        guard written == count else { throw ClusterFailure("\(written) of \(count) objects were written") }
        return Double(count) / duration.inSeconds
    }
}

/// The throughput of a service.
struct BenchRate {
    /// Positions per second.
    let perSecond: Double
    /// Processor time of the service, in microseconds per position.
    let own: Double
    /// Processor time of PostgreSQL, in microseconds per position.
    let database: Double

    /// Adds the processor times to a report.
    ///
    /// - Parameter unit: What a position is, such as a task.
    func addProcessorTimes(to report: inout BenchReport, per unit: String) {
        report.add("processor time", "µs/\(unit)", own)
        report.add("PostgreSQL's processor time", "µs/\(unit)", database)
    }

    /// Starts a service and measures until it has written `count` positions. The first fifth does not count: the
    /// service's partitions are still assigned then.
    static func measure(
        _ service: ServiceDescription, workers: Int = 1, count: Int, _ writer: BenchWriter,
        on installation: BenchInstallation
    ) async throws -> BenchRate {
        let start = try writer.position()
        let process = try installation.start(service, variables: ["FIELDPOST_WORKER_COUNT": "\(workers)"])
        // A service that is terminated commits its offsets.
        defer { if process.terminate(within: .seconds(20)) == nil { process.kill9() } }
        func sample(
            after position: Int64
        ) async throws -> (time: ContinuousClock.Instant, position: Int64, own: Double, database: Double) {
            var found = Int64(0)
            try await waitUntil("position \(position)", within: .seconds(300), interval: .milliseconds(5)) {
                guard process.isRunning else { throw ClusterFailure(process.logTail()) }
                found = try writer.position()
                return found >= position
            }
            let now = ContinuousClock.now
            return (
                now, found, ProcessUsage.processorTime(of: process.id), installation.processorTime(of: .database)
            )
        }
        let first = try await sample(after: start + Int64(max(1, count / 5)))
        let last = try await sample(after: start + Int64(count))
        let written = Double(last.position - first.position)
        return BenchRate(
            perSecond: written / (last.time - first.time).inSeconds, own: (last.own - first.own) / written * 1e6,
            database: (last.database - first.database) / written * 1e6)
    }
}
