import Algorithms
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Teams of 30 with tasks, and what is done with many tasks at a time.
struct BenchTasks: ~Copyable {
    struct Task: Sendable {
        let id: UUID
        let team: UUID
        let assignee: UUID
        /// The team's.
        let realm: Int32
    }

    var world: BenchWorld
    private(set) var tasks: [Task] = []
    private var number = 0
    private var random = SplitMix64(seed: 1)

    private static let memberCount = 30
    /// As many as a worker takes at a time.
    static let batchCount = 500

    init(on place: BenchPlace) throws { world = try BenchWorld(on: place) }

    /// Makes teams with tasks that have no copies yet.
    ///
    /// - Returns: The tasks, in no order.
    @discardableResult
    mutating func add(_ count: Int, perTeam: Int = 100) throws -> [Task] {
        var added: [Task] = []
        var teams: [(id: UUID, members: [UUID])] = []
        for _ in 0..<(count + perTeam - 1) / perTeam {
            teams.append((random.id(), (0..<Self.memberCount).map { _ in random.id() }))
        }
        let (common, realms) = (world.common, try world.realms(teams.map { .team($0.id) }))
        try world.addTeams(teams)
        try world.put(
            teams.flatMap(\.members).map { person in
                (ObjectKey(realm: common, kind: .person, id: person), #"{"name":"Somebody","role":"worker"}"#)
            })
        for team in teams {
            for _ in 0..<min(perTeam, count - added.count) {
                let assignee = team.members.randomElement(using: &random) ?? team.id
                added.append(
                    Task(id: random.id(), team: team.id, assignee: assignee, realm: realms[.team(team.id)] ?? 0))
            }
        }
        // As events come: not team by team.
        added.shuffle(using: &random)
        tasks += added
        try change(added)
        return added
    }

    private func fields(_ task: Task) -> String {
        """
        {"title":"Bulky items \(number)","taskDescription":"Sofa and two chairs at the kerb, left of the gate",\
        "creationDate":"2017-12-31T18:20:00.000Z","dueDate":"2018-01-03T08:00:00.000Z","isCompleted":false,\
        "place":{"latitude":34.0522,"longitude":-118.2437,"street":"200 N Spring St","city":"Los Angeles"},\
        "team":"\(task.team.text)","assignee":"\(task.assignee.text)"}
        """
    }

    /// Gives masters another title.
    mutating func change(_ tasks: [Task]) throws {
        number += 1
        try world.put(tasks.map { (master($0), fields($0)) })
    }

    /// Gives one master another title, and publishes it.
    mutating func edit(_ task: Task) throws {
        number += 1
        try world.write([(master(task), fields(task))])
        try publish([task])
    }

    /// Those of the tasks whose copies were written since their masters.
    mutating func upToDate(_ tasks: [Task]) throws -> [UUID] {
        if tasks.isEmpty { return [] }
        let objects = try world.load(tasks.flatMap { [master($0), copy($0)] })
        return tasks.filter { task in
            objects[copy(task)].map { $0.position > objects[master(task)]?.position ?? 0 } ?? false
        }.map(\.id)
    }

    func master(_ task: Task) -> ObjectKey { ObjectKey(realm: world.manager, kind: .fieldTask, id: task.id) }
    func copy(_ task: Task) -> ObjectKey { ObjectKey(realm: task.realm, kind: .fieldTask, id: task.id) }

    /// Publishes masters as the relay would.
    mutating func publish(_ tasks: [Task]) throws {
        let places = tasks.map { BenchWorld.Place(path: .manager, key: master($0)) }
        try world.publish(places, to: Topics.task)
    }

    /// Publishes copies as the relay would.
    mutating func publishCopies(of tasks: [Task]) throws {
        let places = tasks.map { BenchWorld.Place(path: .team($0.team), key: copy($0)) }
        try world.publish(places, to: Topics.task)
    }

    // MARK: The limits

    /// Changes every master, and then every copy with the statements that the service would run, made beforehand.
    ///
    /// - Returns: Tasks a second.
    mutating func changeAlone() throws -> Double {
        try change(tasks)
        var pipelines: [[Statement]] = []
        for part in tasks.chunks(ofCount: Self.batchCount) { pipelines.append(try pipeline(Array(part))) }
        return Double(tasks.count) / (try world.time(pipelines)).inSeconds
    }

    private mutating func pipeline(_ part: [Task]) throws -> [Statement] {
        func named(_ task: Task) -> [ObjectKey] {
            [
                ObjectKey(realm: world.common, kind: .team, id: task.team),
                ObjectKey(realm: world.common, kind: .person, id: task.assignee),
                ObjectKey(realm: world.common, kind: .membership, id: Membership.id(of: task.assignee, in: task.team)),
            ]
        }
        let objects = try world.load(part.flatMap { [master($0), copy($0)] + named($0) })
        var batch = WriteBatch(environment: world.environment)
        for (decision, task) in part.enumerated() {
            for key in [master(task), copy(task)] + named(task) {
                batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
            }
            batch.put(copy(task), try CanonicalJSON(fields(task)), decision: decision)
        }
        batch.expect(
            """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(part.map(\.id)), \(part.indices.map(Int32.init))) AS g(id, decision)
            LEFT JOIN LATERAL (
                SELECT c.version FROM task.copy c
                WHERE c.environment_id = \(world.environment.rawValue) AND c.task_id = g.id
                OFFSET 0
            ) c ON true
            WHERE c.version IS NULL
            """)
        return batch.pipeline
    }

    /// Writes masters and copies with another title, as statements made beforehand, 500 rows a transaction, and no
    /// guards.
    ///
    /// - Returns: How long it takes.
    mutating func writeAlone(_ tasks: [Task]) throws -> Duration {
        number += 1
        var pipelines: [[Statement]] = []
        for part in tasks.flatMap({ [(master($0), $0), (copy($0), $0)] }).chunks(ofCount: Self.batchCount) {
            var batch = WriteBatch(environment: world.environment)
            for (key, task) in part { batch.put(key, try CanonicalJSON(fields(task)), decision: 0) }
            pipelines.append(batch.pipeline)
        }
        return try world.time(pipelines)
    }
}
