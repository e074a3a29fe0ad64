import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Maintains the copies of tasks and of their notes, unassigns tasks of deleted teams and people, removes the
/// memberships of both, and notifies people of their tasks.
struct TaskHandler: Handler {
    static let schemaOldest: Int32 = 35
    static let skipsUneditedKeys = true

    private let retention: TaskRetention
    private let now: @Sendable () -> Timestamp
    private var directory = RealmDirectory()
    private let references = DeletedReferences()
    private var requeues = RequeueProgress()

    init(
        retention: TaskRetention = TaskRetention(), now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) {
        self.retention = retention
        self.now = now
    }

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        var dispositions = Array(repeating: Disposition<Never>.finished, count: inputs.count)
        var decisions: [UUID: [Int]] = [:]
        var notes: [UUID: [Int]] = [:]
        var causes: [Int] = []
        for (index, input) in inputs.enumerated() {
            let isNote = input.subject.kind == .taskNote
            guard isNote || input.subject.kind == .fieldTask else {
                causes.append(index)
                continue
            }
            // A copy that no device edited was written by a decision with complete state. Masters are always processed,
            // so that a republication repairs everything.
            guard input.isEdit || input.subject.realm == .manager else { continue }
            if isNote {
                notes[input.subject.id, default: []].append(index)
            } else {
                decisions[input.subject.id, default: []].append(index)
            }
        }
        if decisions.isEmpty, notes.isEmpty, causes.isEmpty { return dispositions }
        let changed = [decisions, notes].flatMap { $0.values.joined() }.map { inputs[$0].subject.realm }
        let fixed = try directory.ids(
            of: Set([.common, .manager] + (notes.isEmpty ? [] : [.archive]) + changed), in: environment, create: true,
            on: &connection)
        guard let common = fixed[.common], let manager = fixed[.manager] else { return dispositions }
        let fixedRealms = TaskRealms(common: common, manager: manager)
        if let archive = fixed[.archive], !notes.isEmpty {
            let subjects = notes.mapValues { indexes in
                indexes.map { (decision: $0, realm: fixed[inputs[$0].subject.realm] ?? manager) }
            }
            var changes = NoteBatch(subjects, environment: environment, fixedRealms: fixedRealms, archive: archive)
            try changes.load(on: &connection)
            changes.write(to: &batch)
        }
        if decisions.isEmpty, causes.isEmpty { return dispositions }
        let causeKeys = causes.map { index in
            ObjectKey(realm: common, kind: inputs[index].subject.kind, id: inputs[index].subject.id)
        }
        let results = try connection.run([
            TaskStore.load(decisions.keys, retention, fixedRealms, in: environment),
            Presence.load(causeKeys, in: environment),
        ])
        if !causes.isEmpty {
            let presences = try Presence.byKey(results[1])
            let all = zip(causes, causeKeys).map { (decision: $0, key: $1, presence: presences[$1] ?? Presence()) }
            for index in try requeue(of: all, fixedRealms, in: environment, &batch, on: &connection) {
                dispositions[index] = .reprocess
            }
            try references.removeObjects(of: all, fixedRealms, in: environment, &batch, on: &connection)
        }
        guard !decisions.isEmpty else { return dispositions }

        var tasks = TaskBatch(environment: environment, fixedRealms: fixedRealms, now: now())
        for row in results[0] {
            let snapshot = try TaskSnapshot(row)
            let indexes = decisions[snapshot.task] ?? []
            do {
                try tasks.add(snapshot, indexes.map { ($0, fixed[inputs[$0].subject.realm] ?? manager) })
            } catch {
                for index in indexes { dispositions[index] = .deadLettered(reason: "cannot decode the task: \(error)") }
            }
        }
        try tasks.load(on: &connection)
        for (decision, disposition) in try tasks.write(to: &batch, &directory, on: &connection) {
            dispositions[decision] = disposition
        }
        return dispositions
    }

    /// Makes up to `RequeueProgress.countMax` keys due: tasks that reference a missing team, membership or person, and
    /// memberships of a deleted team or person. A new or renamed one changes no task.
    ///
    /// - Returns: The decisions whose causes have keys left.
    private mutating func requeue(
        of causes: [DeletedReferences.Cause], _ fixedRealms: TaskRealms, in environment: EnvironmentID,
        _ batch: inout WriteBatch, on connection: inout Connection
    ) throws -> [Int] {
        var missing: [Int: RequeueProgress.Cause] = [:]
        for (decision, key, presence) in causes {
            // Without writes nothing is checked: a later state has its own event. The position counts as processed.
            batch.expect(key, at: presence.position, decision: decision)
            if !presence.isThere {
                missing[decision] = .init(environment: environment, key: key, position: presence.position)
            }
        }
        guard !missing.isEmpty else { return [] }
        let now = ContinuousClock.now
        let unread = requeues.unread(Array(missing.values), now: now)
        let started = causes.filter { missing[$0.decision].map(unread.contains) ?? false }
        if !started.isEmpty {
            let rows = try connection.run(
                TaskCascade.tasks(referencing: started.map { ($0.key, $0.decision) }, in: environment))
            var tasks: [Int: [UUID]] = [:]
            for (decision, task) in try rows.decode(Int32.self, UUID.self) {
                tasks[Int(decision), default: []].append(task)
            }
            let memberships = Dictionary(
                grouping: try references.memberships(of: started, fixedRealms, in: environment, on: &connection),
                by: \.decision)
            for (decision, _, _) in started {
                guard let cause = missing[decision] else { continue }
                requeues.begin(
                    cause, tasks: tasks[decision] ?? [], memberships: memberships[decision]?.map(\.id) ?? [], now: now)
            }
        }
        let (unfinished, isAny) = try requeues.step(
            Array(missing.values), in: environment, now: now, on: &connection)
        if isAny { batch.defersDueKeys = true }
        return missing.filter { unfinished.contains($0.value) }.map(\.key)
    }
}

/// The numbers of an environment's unique realms.
struct TaskRealms {
    let common: Int32
    let manager: Int32

    func master(_ task: UUID) -> ObjectKey { ObjectKey(realm: manager, kind: .fieldTask, id: task) }
    func team(_ team: UUID) -> ObjectKey { ObjectKey(realm: common, kind: .team, id: team) }
    func person(_ person: UUID) -> ObjectKey { ObjectKey(realm: common, kind: .person, id: person) }

    func membership(of person: UUID, in team: UUID) -> ObjectKey {
        ObjectKey(realm: common, kind: .membership, id: Membership.id(of: person, in: team))
    }
}
