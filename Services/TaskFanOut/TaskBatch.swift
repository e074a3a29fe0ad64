import Access
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The tasks of one batch: loads their state, and writes the decisions.
///
/// Each task has one decision, for any number of events: the first input writes, and all inputs have the same
/// guards.
struct TaskBatch {
    /// A task with its stored state.
    struct Item {
        /// The inputs about the task, each with the realm of the changed object.
        let subjects: [(decision: Int, realm: Int32)]
        let snapshot: TaskSnapshot
        /// The fields of the master; `nil` if it does not exist.
        let fields: JSONObject?
        /// The team of the master.
        let team: UUID?
        /// The assignee of the master.
        let assignee: UUID?
        /// The team, person and membership that the master references.
        var references: ReferencePresences

        init(_ snapshot: TaskSnapshot, _ subjects: [(decision: Int, realm: Int32)]) throws(JSONError) {
            self.snapshot = snapshot
            self.subjects = subjects
            fields = if let fields = snapshot.master.fields { try JSONObject(fields.bytes) } else { nil }
            (team, assignee) = (fields?.id(of: "team"), fields?.id(of: "assignee"))
            references = snapshot.references
        }

        var task: UUID { snapshot.task }
        var row: TaskRow { snapshot.row }
        var decision: Int { subjects[0].decision }
        var copy: ObjectKey? { row.realm.map { ObjectKey(realm: $0, kind: .fieldTask, id: task) } }
        /// Whether the row has the references of the master, so that they are already loaded.
        var matchesRow: Bool { team == row.team && assignee == row.assignee }
    }

    let environment: EnvironmentID
    let fixedRealms: TaskRealms
    private let now: Timestamp
    private var items: [Item] = []

    init(environment: EnvironmentID, fixedRealms: TaskRealms, now: Timestamp) {
        self.environment = environment
        self.fixedRealms = fixedRealms
        self.now = now
    }

    /// Adds a task.
    ///
    /// - Throws: `JSONError` if the master cannot be decoded.
    mutating func add(_ task: TaskSnapshot, _ subjects: [(decision: Int, realm: Int32)]) throws(JSONError) {
        items.append(try Item(task, subjects))
    }

    // MARK: Loading

    private func teamKey(_ item: Item) -> ObjectKey? { item.team.map(fixedRealms.team) }
    private func personKey(_ item: Item) -> ObjectKey? { item.assignee.map(fixedRealms.person) }

    private func membershipKey(_ item: Item) -> ObjectKey? {
        guard let team = item.team, let assignee = item.assignee else { return nil }
        return fixedRealms.membership(of: assignee, in: team)
    }

    /// Loads references of masters that changed since the last decision, in one round trip.
    mutating func load(on connection: inout Connection) throws {
        let new = items.indices.filter { !items[$0].matchesRow }
        let keys = Set(new.flatMap { [teamKey(items[$0]), personKey(items[$0]), membershipKey(items[$0])] })
        let missingKeys = keys.compactMap(\.self)
        let presences =
            missingKeys.isEmpty ? [:] : try Presence.byKey(connection.run(Presence.load(missingKeys, in: environment)))
        for index in new {
            func presence(_ key: ObjectKey?) -> Presence { key.flatMap { presences[$0] } ?? Presence() }
            let item = items[index]
            items[index].references = ReferencePresences(
                team: presence(teamKey(item)), person: presence(personKey(item)),
                membership: presence(membershipKey(item)))
        }
    }

    // MARK: Decisions

    private func facts(_ item: Item, _ fields: JSONObject) -> TaskFacts {
        var facts = TaskFacts(
            master: .init(progress: TaskProgress(of: fields), editPosition: item.snapshot.master.editPosition))
        // A copy that does not decode is ignored and rewritten.
        if let bytes = item.snapshot.copy.fields?.bytes, let fields = try? JSONObject(bytes) {
            facts.copy = .init(progress: TaskProgress(of: fields), editPosition: item.snapshot.copy.editPosition)
        }
        if item.row.version > 0 { facts.base = item.row.progress }
        facts.team = item.team.map { .init(id: $0, exists: item.references.team.isThere) }
        facts.assignee = item.assignee.map { .init(id: $0, exists: item.references.person.isThere) }
        facts.isMember = item.references.membership.isThere
        (facts.isCopyExpired, facts.isMasterExpired) = (item.row.isCopyExpired, item.row.isMasterExpired)
        return facts
    }

    /// Returns the e-mail addresses of people whose own realms get copies or notices.
    private func emails(for plans: [TaskPlan], on connection: inout Connection) throws -> [UUID: String] {
        var people = Set(plans.flatMap { $0.events.map(\.person) })
        for plan in plans { if case .person(let id)? = plan.decision?.target { people.insert(id) } }
        if people.isEmpty { return [:] }
        let rows = try connection.run(People.emails(of: people, in: environment))
        return Dictionary(uniqueKeysWithValues: try rows.decode(UUID.self, String.self).map { ($0, $1) })
    }

    private func path(_ decision: TaskDecision, _ emails: [UUID: String]) -> RealmPath? {
        if decision.isArchived { return .archive }
        return switch decision.target {
        case .none: nil
        case .team(let id): .team(id)
        case .person(let id): emails[id].flatMap { try? RealmPath.user($0) }
        }
    }

    // MARK: Writing

    /// Decides about the tasks and adds the changes to the batch.
    ///
    /// - Returns: The inputs that are not finished: of tasks that cannot be encoded, and beyond the limit of notices.
    mutating func write(
        to batch: inout WriteBatch, _ directory: inout RealmDirectory, on connection: inout Connection
    ) throws -> [Int: Disposition<Never>] {
        var plans = items.map { item in
            TaskPlan(item, item.fields.map { TaskRule.decide(facts(item, $0)) }, now: now)
        }
        try addEvents(to: &plans, on: &connection)
        let emails = try emails(for: plans, on: &connection)
        let paths = plans.map { $0.decision.flatMap { path($0, emails) } }
        let own = emails.compactMapValues { try? RealmPath.user($0) }
        let realms = try directory.ids(
            of: Set(paths.compactMap(\.self)).union(own.values), in: environment, create: true, on: &connection)
        let notices = TaskNotices(now: now, realms: own.compactMapValues { realms[$0] })
        var (rows, unfinished) = (TaskRows(), [Int: Disposition<Never>]())
        var left = TaskNotices.countMax
        for (index, item) in items.enumerated() {
            // A task with many notices waits for the next batch, unless it is the first one.
            let count = plans[index].events.count
            guard count <= left || left == TaskNotices.countMax else {
                expect(item, &batch, &rows)
                for subject in item.subjects { unfinished[subject.decision] = .reprocess }
                continue
            }
            left -= count
            do {
                try notices.put(plans[index].events, of: item, to: &batch)
                try write(item, plans[index], in: paths[index].flatMap { realms[$0] }, &batch, &rows)
            } catch {
                for subject in item.subjects {
                    unfinished[subject.decision] = .deadLettered(reason: "cannot encode the task: \(error)")
                }
            }
        }
        rows.write(to: &batch, in: environment)
        return unfinished
    }

    private func write(
        _ item: Item, _ plan: TaskPlan, in realm: Int32?, _ batch: inout WriteBatch, _ rows: inout TaskRows
    ) throws(JSONError) {
        if let author = item.snapshot.author {
            rows.processed.append((item.task, author.editPosition, item.decision))
        }
        if let decision = plan.decision, let stored = item.snapshot.master.fields {
            let fields = try fields(item, decision) ?? stored
            if decision.isArchived {
                archive(fields, item, in: realm, &batch)
                moveNotes(of: item, &batch, &rows)
                rows.deleted.append((item.task, item.decision))
            } else {
                if fields != stored { batch.put(fixedRealms.master(item.task), fields, decision: item.decision) }
                putCopy(fields, item, in: realm, &batch)
                var row = item.row
                (row.realm, row.team, row.assignee) = (realm, decision.team, decision.assignee)
                (row.progress, row.due) = (decision.progress, plan.due)
                if realm != item.row.realm { moveNotes(of: item, &batch, &rows) }
                if row.version == 0 || row != item.row { rows.saved.append((item.task, row, item.decision)) }
            }
        } else {
            if item.row.version > 0 {
                deleteCopy(of: item, &batch)
                rows.deleted.append((item.task, item.decision))
            }
            if item.row.version > 0 || item.snapshot.hasNotes { moveNotes(of: item, &batch, &rows) }
        }
        // Also without writes: if a team is deleted meanwhile, the task is re-queued under its key, and a decision
        // based on the earlier state must not finish that key.
        expect(item, &batch, &rows)
    }

    /// Re-queues the notes, which are decided from the committed state of the task.
    private func moveNotes(of item: Item, _ batch: inout WriteBatch, _ rows: inout TaskRows) {
        rows.moved.append((item.task, item.decision))
        if item.snapshot.hasNotes { batch.defersDueKeys = true }
    }

    /// Adds the preconditions of a task's inputs. The first one is the object of each event.
    private func expect(_ item: Item, _ batch: inout WriteBatch, _ rows: inout TaskRows) {
        let references = [
            (teamKey(item), item.references.team), (personKey(item), item.references.person),
            (membershipKey(item), item.references.membership),
        ]
        for (decision, realm) in item.subjects {
            let isAboutCopy = realm != fixedRealms.manager && realm == item.row.realm
            if isAboutCopy { expectCopy(of: item, decision, &batch) }
            batch.expect(fixedRealms.master(item.task), at: item.snapshot.master.position, decision: decision)
            if !isAboutCopy { expectCopy(of: item, decision, &batch) }
            for (key, presence) in references {
                if let key { batch.expect(key, at: presence.position, decision: decision) }
            }
            rows.versions.append((item.task, item.row.version, decision))
        }
    }

    private func expectCopy(of item: Item, _ decision: Int, _ batch: inout WriteBatch) {
        if let copy = item.copy { batch.expect(copy, at: item.snapshot.copy.position, decision: decision) }
    }

    /// Returns the new fields of the master and the copy; `nil`: the master's stored ones.
    private func fields(_ item: Item, _ decision: TaskDecision) throws(JSONError) -> CanonicalJSON? {
        guard let fields = item.fields else { return nil }
        var changes = decision.progress.fields(after: TaskProgress(of: fields))
        if decision.team == nil, item.team != nil { changes.append(("team", "null")) }
        if decision.assignee == nil, item.assignee != nil { changes.append(("assignee", "null")) }
        if changes.isEmpty { return nil }
        let patch = changes.map { (key: $0.key, value: Array($0.json.utf8)[...]) }
        return try CanonicalJSON(fields.merging(try JSONObject(JSONObject.bytes(of: patch))))
    }

    private func deleteCopy(of item: Item, _ batch: inout WriteBatch) {
        if let copy = item.copy, item.snapshot.copy.fields != nil { batch.delete(copy, decision: item.decision) }
    }

    /// Moves the copy to its realm, and updates it.
    private func putCopy(_ fields: CanonicalJSON, _ item: Item, in realm: Int32?, _ batch: inout WriteBatch) {
        if item.row.realm != realm { deleteCopy(of: item, &batch) }
        guard let realm, item.row.realm != realm || item.snapshot.copy.fields != fields else { return }
        batch.put(ObjectKey(realm: realm, kind: .fieldTask, id: item.task), fields, decision: item.decision)
    }

    /// Moves the master to the archive, and deletes its copy.
    private func archive(_ fields: CanonicalJSON, _ item: Item, in archive: Int32?, _ batch: inout WriteBatch) {
        guard let archive else { return }
        deleteCopy(of: item, &batch)
        batch.put(ObjectKey(realm: archive, kind: .fieldTask, id: item.task), fields, decision: item.decision)
        batch.delete(fixedRealms.master(item.task), decision: item.decision)
    }
}
