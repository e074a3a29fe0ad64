import Algorithms
import Essentials
import FoundationEssentials
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

    let writer: BenchWriter
    private var tasks: [Task] = []
    /// Number of changes so far; part of each title.
    private var revision = 0

    private static let memberCount = 30
    private static let tasksPerTeam = 100

    var count: Int { tasks.count }

    init(_ installation: BenchInstallation, count: Int) throws {
        writer = try BenchWriter(installation)
        var random = SplitMix64(seed: 1)
        let teams = (0..<(count + Self.tasksPerTeam - 1) / Self.tasksPerTeam).map { _ in
            (id: random.id(), members: (0..<Self.memberCount).map { _ in random.id() })
        }
        let realms = try writer.realms(teams.map { .team($0.id) })
        for team in teams {
            for _ in 0..<min(Self.tasksPerTeam, count - tasks.count) {
                let assignee = team.members.randomElement(using: &random) ?? team.id
                tasks.append(
                    Task(id: random.id(), team: team.id, assignee: assignee, realm: realms[.team(team.id)] ?? 0))
            }
        }
        // Events of a team do not arrive together.
        tasks.shuffle(using: &random)
        try writer.begin(Services.taskFanOut)
        try writer.write(teams.flatMap { members(of: $0.id, $0.members) })
    }

    private func members(of team: UUID, _ people: [UUID]) -> [(key: ObjectKey, fields: String)] {
        var objects = [writer.team(team)]
        for person in people {
            let key = ObjectKey(realm: writer.common, kind: .person, id: person)
            objects += [(key, #"{"name":"Ana","role":"worker"}"#), writer.membership(of: person, in: team)]
        }
        return objects
    }

    private func master(_ task: Task) -> ObjectKey { ObjectKey(realm: writer.manager, kind: .fieldTask, id: task.id) }
    private func copy(_ task: Task) -> ObjectKey { ObjectKey(realm: task.realm, kind: .fieldTask, id: task.id) }

    private func fields(_ task: Task) -> String {
        Self.fields(number: revision, team: task.team.text, others: ",\"assignee\":\"\(task.assignee.text)\"")
    }

    /// The fields of a task as JSON.
    static func fields(number: Int, team: String, others: String = "") -> String {
        """
        {"title":"Bulky items \(number)","taskDescription":"Sofa and two chairs at the kerb, left of the gate",\
        "creationDate":"2017-12-31T18:20:00.000Z","dueDate":"2018-01-03T08:00:00.000Z","isCompleted":false,\
        "place":{"latitude":34.0522,"longitude":-118.2437,"street":"200 N Spring St","city":"Los Angeles"},\
        "team":"\(team)"\(others)}
        """
    }

    /// Changes the title of every master.
    func change() throws {
        revision += 1
        try writer.write(tasks.map { (master($0), fields($0)) })
    }

    /// Publishes all masters.
    func publish() throws {
        try writer.publish(tasks.map { BenchWriter.Source(path: .manager, key: master($0)) }, to: Topics.task)
    }

    /// Changes every master, and then measures the service's statements for every copy, which are prepared before.
    ///
    /// - Returns: Tasks per second.
    func copyAlone() throws -> Double {
        try change()
        var pipelines: [[Statement]] = []
        for page in tasks.chunks(ofCount: BenchWriter.batchCount) { pipelines.append(try pipeline(Array(page))) }
        return try writer.rate(of: pipelines, count: tasks.count)
    }

    private func pipeline(_ page: [Task]) throws -> [Statement] {
        func references(_ task: Task) -> [ObjectKey] {
            [
                ObjectKey(realm: writer.common, kind: .team, id: task.team),
                ObjectKey(realm: writer.common, kind: .person, id: task.assignee),
                ObjectKey(realm: writer.common, kind: .membership, id: Membership.id(of: task.assignee, in: task.team)),
            ]
        }
        let objects = try writer.load(page.flatMap { [master($0), copy($0)] + references($0) })
        var batch = WriteBatch(environment: writer.environment)
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
                WHERE c.environment_id = \(writer.environment.rawValue) AND c.task_id = g.id
                OFFSET 0
            ) c ON true
            WHERE c.version IS NULL
            """)
        return batch.pipeline
    }
}
