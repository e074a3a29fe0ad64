import Algorithms
import Essentials
import FoundationEssentials
import Glibc
import Kafka
import Model
import Postgres
import Realms
import Work

/// An environment with teams of 30 and tasks, and what is done with all of the tasks at a time.
struct BenchTasks: ~Copyable {
    private struct Task {
        let id: UUID
        let team: UUID
        let assignee: UUID
        let realm: Int32
    }

    var connection: Connection
    private let environment: EnvironmentID
    private let common: Int32
    private let manager: Int32
    private var tasks: [Task] = []
    private var objects: [ObjectKey: RealmObject] = [:]
    private var number = 0

    private static let memberCount = 30
    private static let tasksPerTeam = 100
    private static let writeCountMax = 5_000
    /// As many as a worker takes at a time.
    private static let batchCount = 500

    init(on conninfo: String) throws {
        var connection = try Connection(conninfo)
        let environment = try connection.run(
            "INSERT INTO realm.environment (name) VALUES ('bench') RETURNING id")[0].decode(EnvironmentID.self)
        var directory = RealmDirectory()
        let realms = try directory.ids(of: [.common, .manager], in: environment, create: true, on: &connection)
        self.environment = environment
        (common, manager) = (realms[.common] ?? 0, realms[.manager] ?? 0)
        self.connection = connection
    }

    /// Makes teams and tasks.
    mutating func fill(_ count: Int) throws {
        var random = SplitMix64(seed: 1)
        let teams = (0..<(count + Self.tasksPerTeam - 1) / Self.tasksPerTeam).map { _ in random.id() }
        var directory = RealmDirectory()
        let realms = try directory.ids(
            of: teams.map(RealmPath.team), in: environment, create: true, on: &connection)
        for team in teams {
            let members = (0..<Self.memberCount).map { _ in random.id() }
            try add(team, members)
            for _ in 0..<min(Self.tasksPerTeam, count - tasks.count) {
                let assignee = members.randomElement(using: &random) ?? team
                tasks.append(Task(id: random.id(), team: team, assignee: assignee, realm: realms[.team(team)] ?? 0))
            }
        }
        // As events come: not team by team.
        tasks.shuffle(using: &random)
        try write()
    }

    private mutating func add(_ team: UUID, _ members: [UUID]) throws {
        var batch = WriteBatch(environment: environment)
        func put(_ kind: Kind, _ id: UUID, _ fields: String, _ batch: inout WriteBatch) throws {
            let key = ObjectKey(realm: common, kind: kind, id: id)
            batch.put(key, try CanonicalJSON(fields), decision: 0, isEdit: true)
        }
        try put(.team, team, "{\"name\":\"Team\"}", &batch)
        for person in members {
            try put(.person, person, "{\"name\":\"Somebody\",\"role\":\"worker\"}", &batch)
            try put(
                .membership, Membership.id(of: person, in: team),
                "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}", &batch)
        }
        _ = try batch.commit(on: &connection)
    }

    private func fields(_ task: Task) throws -> CanonicalJSON {
        try CanonicalJSON(
            """
            {"title":"Bulky items \(number)","taskDescription":"Sofa and two chairs at the kerb, left of the gate",\
            "creationDate":"2017-12-31T18:20:00.000Z","dueDate":"2018-01-03T08:00:00.000Z","isCompleted":false,\
            "place":{"latitude":34.0522,"longitude":-118.2437,"street":"200 N Spring St","city":"Los Angeles"},\
            "team":"\(task.team.text)","assignee":"\(task.assignee.text)"}
            """)
    }

    /// Gives every master another title.
    private mutating func write() throws {
        number += 1
        for part in tasks.chunks(ofCount: Self.writeCountMax) {
            var batch = WriteBatch(environment: environment)
            for task in part { batch.put(master(task), try fields(task), decision: 0, isEdit: true) }
            _ = try batch.commit(on: &connection)
        }
        try connection.runScript("CHECKPOINT")
    }

    mutating func change() throws { try write() }

    private func master(_ task: Task) -> ObjectKey { ObjectKey(realm: manager, kind: .fieldTask, id: task.id) }
    private func copy(_ task: Task) -> ObjectKey { ObjectKey(realm: task.realm, kind: .fieldTask, id: task.id) }

    // MARK: The service

    /// The service's group has begun its topics, so that it does not begin them again.
    func begin(_ service: ServiceDescription, on conninfo: String) throws {
        var connection = try Connection(conninfo)
        for topic in service.topics {
            try connection.run(
                """
                INSERT INTO pipeline.progress (group_name, topic, partition, epoch)
                SELECT \(service.name), \(topic.name), p, 1
                FROM unnest(\((0..<topic.partitions).map(Int32.init))) p
                """)
        }
    }

    /// Publishes every master as the relay would.
    mutating func publish(to brokers: String) throws {
        try load()
        var producer = try Producer(brokers: brokers)
        var writer = EventWriter(environment: environment, generation: 1, epoch: 1)
        for task in tasks {
            guard let object = objects[master(task)], let fields = object.fields else { continue }
            let published = PublishedObject(
                realm: .manager, kind: .fieldTask, id: task.id, position: object.position,
                editPosition: object.editPosition, time: .now())
            try unsafe fields.bytes.withUnsafeBytes {
                try unsafe writer.send(published, to: Topics.task, json: $0, tag: 0, through: &producer)
            }
        }
        guard producer.flush(waitMax: .seconds(120)) else {
            throw BenchPlace.Missing(description: "the broker is too slow")
        }
    }

    /// Masters and copies as they are.
    private mutating func load() throws {
        objects = [:]
        for part in tasks.chunks(ofCount: Self.writeCountMax) {
            let rows = try connection.run(RealmObject.load(part.flatMap { [master($0), copy($0)] }, in: environment))
            objects.merge(try RealmObject.byKey(rows)) { $1 }
        }
    }

    mutating func position() throws -> Int64 {
        try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0].value(0)
    }

    /// Waits until the environment's counter is there.
    ///
    /// - Returns: When it was seen, and where it was.
    mutating func wait(
        until wanted: Int64, within: Duration
    ) throws -> (at: ContinuousClock.Instant, position: Int64) {
        let deadline = ContinuousClock.now + within
        while true {
            let found = try position()
            if found >= wanted { return (.now, found) }
            guard ContinuousClock.now < deadline else {
                throw BenchPlace.Missing(description: "the service is at \(found) and not at \(wanted)")
            }
            poll(nil, 0, 5)
        }
    }

    // MARK: The limit

    /// Changes every master, and then every copy with the statements that the service would run, made beforehand.
    ///
    /// - Returns: Tasks a second.
    mutating func changeAlone() throws -> Double {
        try write()
        try load()
        let pipelines = try tasks.chunks(ofCount: Self.batchCount).map { try pipeline(Array($0)) }
        let start = ContinuousClock.now
        for pipeline in pipelines { try connection.run(pipeline) }
        return Double(tasks.count) / (ContinuousClock.now - start).inSeconds
    }

    private func pipeline(_ part: [Task]) throws -> [Statement] {
        let keys = part.flatMap { task in
            [
                ObjectKey(realm: common, kind: .team, id: task.team),
                ObjectKey(realm: common, kind: .person, id: task.assignee),
                ObjectKey(realm: common, kind: .membership, id: Membership.id(of: task.assignee, in: task.team)),
            ]
        }
        var batch = WriteBatch(environment: environment)
        for (decision, task) in part.enumerated() {
            for key in [master(task), copy(task)] {
                batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
            }
            // People and teams are where they were made; that the guard misses costs the same.
            for key in keys[(3 * decision)..<(3 * decision + 3)] { batch.expect(key, at: 0, decision: -1) }
            batch.put(copy(task), try fields(task), decision: decision)
        }
        batch.expect(
            """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(part.map(\.id)), \(part.indices.map(Int32.init))) AS g(id, decision)
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
