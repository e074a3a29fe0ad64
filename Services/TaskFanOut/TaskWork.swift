import Environments
import Essentials
import FoundationEssentials
import Model
import Postgres
import Realms

/// The tasks of one batch on their way from what is stored to what is written.
///
/// A task is decided once, whatever number of events are about it: the first one's decision writes, and all of them
/// stand on the same guards.
struct TaskWork {
    /// A task, and what was found of it.
    private struct Item {
        let task: UUID
        /// The decisions that are about it, each with the realm of the object that changed.
        let subjects: [(decision: Int, realm: Int32)]
        let row: TaskRow
        /// With its fields.
        var master: (object: RealmObject, fields: JSONObject)?
        let masterPosition: Int64

        var decision: Int { subjects[0].decision }
        var copy: ObjectKey? { row.realm.map { ObjectKey(realm: $0, kind: .fieldTask, id: task) } }
        var team: UUID? { master?.fields.id(of: "team") }
        var assignee: UUID? { master?.fields.id(of: "assignee") }
    }

    private let environment: EnvironmentID
    private let places: TaskPlaces
    private var items: [Item] = []
    private var objects: [ObjectKey: RealmObject] = [:]
    private var emails: [UUID: String] = [:]

    init(environment: EnvironmentID, places: TaskPlaces) {
        self.environment = environment
        self.places = places
    }

    /// Adds a task.
    ///
    /// - Throws: `JSONProblem` when the master cannot be read.
    mutating func add(
        _ task: UUID, _ subjects: [(decision: Int, realm: Int32)], _ master: RealmObject?, _ row: TaskRow
    ) throws(JSONProblem) {
        var item = Item(
            task: task, subjects: subjects, row: row, master: nil, masterPosition: master?.position ?? 0)
        if let master, let fields = master.fields { item.master = (master, try JSONObject(fields.bytes)) }
        items.append(item)
    }

    // MARK: Loading

    private func teamKey(_ team: UUID) -> ObjectKey { ObjectKey(realm: places.common, kind: .team, id: team) }

    private func personKey(_ person: UUID) -> ObjectKey {
        ObjectKey(realm: places.common, kind: .person, id: person)
    }

    private func membershipKey(_ person: UUID, _ team: UUID) -> ObjectKey {
        ObjectKey(realm: places.common, kind: .membership, id: Membership.id(of: person, in: team))
    }

    /// What else a task is decided from: its copy, and whom and what it names.
    private func keys(_ item: Item) -> [ObjectKey] {
        var keys = item.copy.map { [$0] } ?? []
        if let team = item.team { keys.append(teamKey(team)) }
        if let assignee = item.assignee {
            keys.append(personKey(assignee))
            if let team = item.team { keys.append(membershipKey(assignee, team)) }
        }
        return keys
    }

    /// Reads all that the tasks are decided from, in one round trip.
    mutating func load(_ directory: inout RealmDirectory, on connection: inout Connection) throws {
        let answers = try connection.run([
            RealmObject.load(Set(items.flatMap(keys)), in: environment),
            People.emails(of: Set(items.compactMap(\.assignee)), in: environment),
        ])
        objects = try RealmObject.byKey(answers[0])
        emails = Dictionary(uniqueKeysWithValues: try answers[1].decode(UUID.self, String.self).map { ($0, $1) })
    }

    // MARK: Deciding

    private func isThere(_ key: ObjectKey) -> Bool { objects[key]?.fields != nil }

    private func facts(_ item: Item, _ master: (object: RealmObject, fields: JSONObject)) -> TaskFacts {
        var facts = TaskFacts(
            master: .init(progress: TaskProgress(of: master.fields), editPosition: master.object.editPosition))
        // A copy that cannot be read says nothing, and is written anew.
        if let copy = item.copy.flatMap({ objects[$0] }), let bytes = copy.fields?.bytes,
            let fields = try? JSONObject(bytes)
        {
            facts.copy = .init(progress: TaskProgress(of: fields), editPosition: copy.editPosition)
        }
        if item.row.version > 0 { facts.agreed = item.row.progress }
        facts.team = item.team.map { .init(id: $0, isThere: isThere(teamKey($0))) }
        facts.assignee = item.assignee.map { .init(id: $0, isThere: isThere(personKey($0))) }
        if let assignee = item.assignee, let team = item.team {
            facts.isMember = isThere(membershipKey(assignee, team))
        }
        (facts.isOld, facts.isVeryOld) = (item.row.isOld, item.row.isVeryOld)
        return facts
    }

    private func path(_ place: TaskDecision.Place) -> RealmPath? {
        switch place {
        case .none: nil
        case .team(let id): .team(id)
        case .person(let id): emails[id].flatMap { try? RealmPath.user($0) }
        }
    }

    // MARK: Writing

    /// Decides the tasks and adds what differs to the batch.
    ///
    /// - Returns: Why tasks cannot be written, by the decisions that are about them.
    mutating func write(
        to batch: inout WriteBatch, _ directory: inout RealmDirectory, on connection: inout Connection
    ) throws -> [Int: String] {
        var decided: [(item: Item, decision: TaskDecision?, path: RealmPath?)] = []
        for item in items {
            let decision = item.master.map { TaskRule.decide(facts(item, $0)) }
            decided.append((item, decision, decision.flatMap { $0.isArchived ? .archive : path($0.place) }))
        }
        let realms = try directory.ids(
            of: Set(decided.compactMap(\.path)), in: environment, create: true, on: &connection)
        var (rows, dead) = (TaskRows(), [Int: String]())
        for (item, decision, path) in decided {
            do {
                try write(item, decision, in: path.flatMap { realms[$0] }, &batch, &rows)
            } catch {
                for subject in item.subjects { dead[subject.decision] = "the task cannot be written: \(error)" }
            }
        }
        rows.write(to: &batch, in: environment)
        return dead
    }

    private func write(
        _ item: Item, _ decision: TaskDecision?, in realm: Int32?, _ batch: inout WriteBatch, _ rows: inout TaskRows
    ) throws(JSONProblem) {
        if let decision, let master = item.master {
            let fields = try fields(master, decision)
            if decision.isArchived {
                archive(fields, item, in: realm, &batch)
                rows.gone.append((item.task, item.decision))
            } else {
                if fields != master.object.fields { batch.put(master.object.key, fields, decision: item.decision) }
                place(fields, item, in: realm, &batch)
                var row = item.row
                (row.realm, row.team, row.assignee) = (realm, decision.team, decision.assignee)
                row.progress = decision.progress
                if row.version == 0 || row != item.row { rows.kept.append((item.task, row, item.decision)) }
            }
        } else if item.row.version > 0 {
            if let copy = item.copy, isThere(copy) { batch.delete(copy, decision: item.decision) }
            rows.gone.append((item.task, item.decision))
        }
        // Also where there is nothing to write: a team that goes meanwhile has the task come back by its parked key,
        // which a decision that had not seen that must not release.
        expect(item, &batch, &rows)
    }

    /// All that a task's decisions were made from. The first is the object that each event is about.
    private func expect(
        _ item: Item, _ batch: inout WriteBatch, _ rows: inout TaskRows
    ) {
        let keys = keys(item)
        for (decision, realm) in item.subjects {
            if realm != places.manager, let copy = item.copy, copy.realm == realm {
                batch.expect(copy, at: objects[copy]?.position ?? 0, decision: decision)
            }
            batch.expect(places.master(item.task), at: item.masterPosition, decision: decision)
            for key in keys { batch.expect(key, at: objects[key]?.position ?? 0, decision: decision) }
            rows.versions.append((item.task, item.row.version, decision))
        }
    }

    /// The master as it is to be, and the copy.
    private func fields(
        _ master: (object: RealmObject, fields: JSONObject), _ decision: TaskDecision
    ) throws(JSONProblem) -> CanonicalJSON {
        var changes = decision.progress.fields(after: TaskProgress(of: master.fields))
        if decision.team == nil, master.fields.id(of: "team") != nil { changes.append(("team", "null")) }
        if decision.assignee == nil, master.fields.id(of: "assignee") != nil { changes.append(("assignee", "null")) }
        if changes.isEmpty, let stored = master.object.fields { return stored }
        let patch = changes.map { (key: $0.key, value: Array($0.json.utf8)[...]) }
        return try CanonicalJSON(master.fields.merging(try JSONObject(JSONObject.bytes(of: patch))))
    }

    /// Has the copy be where it is to be, and nowhere else.
    private func place(_ fields: CanonicalJSON, _ item: Item, in realm: Int32?, _ batch: inout WriteBatch) {
        if let copy = item.copy, copy.realm != realm, isThere(copy) { batch.delete(copy, decision: item.decision) }
        guard let realm else { return }
        let key = ObjectKey(realm: realm, kind: .fieldTask, id: item.task)
        guard item.row.realm != realm || objects[key]?.fields != fields else { return }
        batch.put(key, fields, decision: item.decision)
    }

    /// The master goes to the archive; its copy goes with it.
    private func archive(_ fields: CanonicalJSON, _ item: Item, in archive: Int32?, _ batch: inout WriteBatch) {
        guard let archive else { return }
        if let copy = item.copy, isThere(copy) { batch.delete(copy, decision: item.decision) }
        batch.put(ObjectKey(realm: archive, kind: .fieldTask, id: item.task), fields, decision: item.decision)
        batch.delete(places.master(item.task), decision: item.decision)
    }
}
