import Algorithms
import Essentials
import FoundationEssentials
import Kafka
import KeyedWorker
import LocalCluster
import Model
import ObjectStore
import Postgres

/// Teams of 30 people with 100 tasks each, written as by devices and published as by the relay.
final class BenchTasks {
    private struct Task {
        let id: UUID
        let team: UUID
        let assignee: UUID
        /// The team's realm.
        let realm: Int32
    }

    private var connection: Connection
    private var producer: Producer
    private var events: EventWriter
    private let environment: EnvironmentID
    private let common: Int32
    private let manager: Int32
    private var tasks: [Task] = []
    /// Number of changes so far; part of each title.
    private var revision = 0

    private static let memberCount = 30
    private static let tasksPerTeam = 100
    /// The number of tasks per transaction of a worker.
    private static let batchCount = 500
    /// The number of objects written or read per transaction.
    private static let pageCount = 5_000

    var count: Int { tasks.count }

    init(_ installation: BenchInstallation, count: Int) throws {
        environment = installation.environment
        var connection = try Connection(installation.cluster.conninfo)
        var directory = RealmDirectory()
        var random = SplitMix64(seed: 1)
        let teams = (0..<(count + Self.tasksPerTeam - 1) / Self.tasksPerTeam).map { _ in
            (id: random.id(), members: (0..<Self.memberCount).map { _ in random.id() })
        }
        let paths = [.common, .manager] + teams.map { RealmPath.team($0.id) }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        (common, manager) = (realms[.common] ?? 0, realms[.manager] ?? 0)
        events = EventWriter(environment: environment, generation: 1, epoch: 1)
        // The mock cluster responds to a Fetch with one batch of each partition: small ones would limit the consumer.
        producer = try Producer(brokers: installation.cluster.brokers, properties: ["linger.ms": "20"])
        self.connection = connection
        for team in teams {
            for _ in 0..<min(Self.tasksPerTeam, count - tasks.count) {
                let assignee = team.members.randomElement(using: &random) ?? team.id
                tasks.append(
                    Task(id: random.id(), team: team.id, assignee: assignee, realm: realms[.team(team.id)] ?? 0))
            }
        }
        // Events of a team do not arrive together.
        tasks.shuffle(using: &random)
        try begin(Services.taskFanOut)
        for team in teams { try write(members(of: team.id, team.members)) }
    }

    /// Marks the service's topics as known, so that it does not republish them at its first start.
    private func begin(_ service: ServiceDescription) throws {
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

    private func members(of team: UUID, _ people: [UUID]) -> [(key: ObjectKey, fields: String)] {
        var objects = [(ObjectKey(realm: common, kind: .team, id: team), #"{"name":"Team"}"#)]
        for person in people {
            let membership = ObjectKey(realm: common, kind: .membership, id: Membership.id(of: person, in: team))
            let person = ObjectKey(realm: common, kind: .person, id: person)
            objects.append((person, #"{"name":"Somebody","role":"worker"}"#))
            objects.append((membership, "{\"person\":\"\(person.id.text)\",\"team\":\"\(team.text)\"}"))
        }
        return objects
    }

    private func write(_ objects: [(key: ObjectKey, fields: String)]) throws {
        for page in objects.chunks(ofCount: Self.pageCount) {
            var batch = WriteBatch(environment: environment)
            for (key, fields) in page { batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true) }
            _ = try batch.commit(on: &connection)
        }
    }

    private func load(_ keys: [ObjectKey]) throws -> [ObjectKey: RealmObject] {
        var objects: [ObjectKey: RealmObject] = [:]
        for page in keys.chunks(ofCount: Self.pageCount) {
            let rows = try connection.run(RealmObject.load(Array(page), in: environment))
            objects.merge(try RealmObject.byKey(rows)) { $1 }
        }
        return objects
    }

    private func master(_ task: Task) -> ObjectKey { ObjectKey(realm: manager, kind: .fieldTask, id: task.id) }
    private func copy(_ task: Task) -> ObjectKey { ObjectKey(realm: task.realm, kind: .fieldTask, id: task.id) }

    private func fields(_ task: Task) -> String {
        """
        {"title":"Bulky items \(revision)","taskDescription":"Sofa and two chairs at the kerb, left of the gate",\
        "creationDate":"2017-12-31T18:20:00.000Z","dueDate":"2018-01-03T08:00:00.000Z","isCompleted":false,\
        "place":{"latitude":34.0522,"longitude":-118.2437,"street":"200 N Spring St","city":"Los Angeles"},\
        "team":"\(task.team.text)","assignee":"\(task.assignee.text)"}
        """
    }

    /// Changes the title of every master.
    func change() throws {
        revision += 1
        try write(tasks.map { (master($0), fields($0)) })
        try connection.runScript("CHECKPOINT")
    }

    /// Publishes all masters as the relay does.
    func publish() throws {
        let objects = try load(tasks.map(master))
        for task in tasks {
            guard let object = objects[master(task)], let fields = object.fields else { continue }
            let published = PublishedObject(
                realm: .manager, kind: .fieldTask, id: task.id, position: object.position,
                editPosition: object.editPosition, time: .now())
            try unsafe fields.bytes.withUnsafeBytes {
                try unsafe events.send(published, to: Topics.task, json: $0, tag: 0, through: &producer)
            }
        }
        guard producer.flush(waitMax: .seconds(120)) else { throw ClusterFailure("producer flush timed out") }
        _ = producer.deliveries(waitMax: .zero)
    }

    func position() throws -> Int64 {
        try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0].value(0)
    }

    /// Changes every master, and then measures the service's statements for every copy, which are prepared before.
    ///
    /// - Returns: Tasks per second.
    func copyAlone() throws -> Double {
        try change()
        var pipelines: [[Statement]] = []
        for page in tasks.chunks(ofCount: Self.batchCount) { pipelines.append(try pipeline(Array(page))) }
        let start = ContinuousClock.now
        for pipeline in pipelines { try connection.run(pipeline) }
        return Double(tasks.count) / (ContinuousClock.now - start).inSeconds
    }

    private func pipeline(_ page: [Task]) throws -> [Statement] {
        func references(_ task: Task) -> [ObjectKey] {
            [
                ObjectKey(realm: common, kind: .team, id: task.team),
                ObjectKey(realm: common, kind: .person, id: task.assignee),
                ObjectKey(realm: common, kind: .membership, id: Membership.id(of: task.assignee, in: task.team)),
            ]
        }
        let objects = try load(page.flatMap { [master($0), copy($0)] + references($0) })
        var batch = WriteBatch(environment: environment)
        for (decision, task) in page.enumerated() {
            for key in [master(task), copy(task)] + references(task) {
                batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
            }
            batch.put(copy(task), try CanonicalJSON(fields(task)), decision: decision)
        }
        batch.expect(
            """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(page.map(\.id)), \(page.indices.map(Int32.init))) AS g(id, decision)
            LEFT JOIN LATERAL (
                SELECT c.version FROM task.copy c
                WHERE c.environment_id = \(environment.rawValue) AND c.task_id = g.id
                OFFSET 0
            ) c ON true
            WHERE c.version IS NULL
            """)
        return batch.pipeline
    }
}
