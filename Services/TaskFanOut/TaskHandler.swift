import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Keeps tasks' copies, unassigns tasks of deleted teams and people, and removes the memberships of both.
struct TaskHandler: Handler {
    static let schemaOldest: Int32 = 20

    private let keep: KeepLimits
    private var directory = RealmDirectory()
    private let references = DeletedReferences()

    init(keep: KeepLimits = KeepLimits()) { self.keep = keep }

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        var dispositions = Array(repeating: Disposition<Never>.finished, count: inputs.count)
        var decisions: [UUID: [Int]] = [:]
        var causes: [Int] = []
        for (index, input) in inputs.enumerated() {
            guard input.subject.kind == .fieldTask else {
                causes.append(index)
                continue
            }
            // What nobody edited of a copy was written by a decision that had looked at everything. Masters are never
            // passed over: publishing all of them again repairs everything.
            guard input.isEdit || input.subject.realm == .manager else { continue }
            decisions[input.subject.id, default: []].append(index)
        }
        if decisions.isEmpty, causes.isEmpty { return dispositions }
        let fixed = try directory.ids(
            of: Set([.common, .manager] + decisions.values.joined().map { inputs[$0].subject.realm }), in: environment,
            create: true, on: &connection)
        guard let common = fixed[.common], let manager = fixed[.manager] else { return dispositions }
        let places = TaskPlaces(common: common, manager: manager)
        let causeKeys = causes.map { index in
            ObjectKey(realm: common, kind: inputs[index].subject.kind, id: inputs[index].subject.id)
        }
        let answers = try connection.run([
            TaskStore.load(decisions.keys, keep, places, in: environment),
            Presence.load(causeKeys, in: environment),
        ])
        if !causes.isEmpty {
            let found = try Presence.byKey(answers[1])
            let all = zip(causes, causeKeys).map { (decision: $0, key: $1, presence: found[$1] ?? Presence()) }
            settle(all, in: environment, &batch)
            try references.settle(all, places, in: environment, &batch, on: &connection)
        }
        guard !decisions.isEmpty else { return dispositions }

        var work = TaskWork(environment: environment, places: places)
        for row in answers[0] {
            let found = try FoundTask(row)
            let indexes = decisions[found.task] ?? []
            do {
                try work.add(found, indexes.map { ($0, fixed[inputs[$0].subject.realm] ?? manager) })
            } catch {
                for index in indexes { dispositions[index] = .dead(reason: "the task cannot be read: \(error)") }
            }
        }
        try work.load(on: &connection)
        for (decision, reason) in try work.write(to: &batch, &directory, on: &connection) {
            dispositions[decision] = .dead(reason: reason)
        }
        return dispositions
    }

    /// A team that is gone, a membership, a person: the tasks that name them are decided anew. Of one that came, or
    /// that is called something else now, nothing follows.
    private func settle(
        _ causes: [(decision: Int, key: ObjectKey, presence: Presence)], in environment: EnvironmentID,
        _ batch: inout WriteBatch
    ) {
        var gone: [(key: ObjectKey, decision: Int)] = []
        for (decision, key, presence) in causes {
            batch.expect(key, at: presence.position, decision: decision)
            if !presence.isThere { gone.append((key, decision)) }
        }
        guard !gone.isEmpty else { return }
        batch.also(TaskCascade.tasks(naming: gone, in: environment))
        batch.parksDueKeys = true
    }
}

/// The numbers of an environment's realms of which there is one.
struct TaskPlaces {
    let common: Int32
    let manager: Int32

    func master(_ task: UUID) -> ObjectKey { ObjectKey(realm: manager, kind: .fieldTask, id: task) }
    func team(_ team: UUID) -> ObjectKey { ObjectKey(realm: common, kind: .team, id: team) }
    func person(_ person: UUID) -> ObjectKey { ObjectKey(realm: common, kind: .person, id: person) }

    func membership(of person: UUID, in team: UUID) -> ObjectKey {
        ObjectKey(realm: common, kind: .membership, id: Membership.id(of: person, in: team))
    }
}
