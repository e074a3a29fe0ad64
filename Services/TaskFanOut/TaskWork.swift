import Access
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The tasks of one batch on their way from what is stored to what is written.
///
/// A task is decided once, whatever number of events are about it: the first one's decision writes, and all of them
/// stand on the same guards.
struct TaskWork {
    /// A task, and what was found of it.
    private struct Item {
        /// The decisions that are about it, each with the realm of the object that changed.
        let subjects: [(decision: Int, realm: Int32)]
        let found: FoundTask
        /// The master's; `nil` when it is not there.
        let fields: JSONObject?
        /// The team that the master names.
        let team: UUID?
        /// The assignee that the master names.
        let assignee: UUID?
        /// Of those that the master names.
        var named: NamedPresences

        init(_ found: FoundTask, _ subjects: [(decision: Int, realm: Int32)]) throws(JSONProblem) {
            self.found = found
            self.subjects = subjects
            fields = if let fields = found.master.fields { try JSONObject(fields.bytes) } else { nil }
            (team, assignee) = (fields?.id(of: "team"), fields?.id(of: "assignee"))
            named = found.named
        }

        var task: UUID { found.task }
        var row: TaskRow { found.row }
        var decision: Int { subjects[0].decision }
        var copy: ObjectKey? { row.realm.map { ObjectKey(realm: $0, kind: .fieldTask, id: task) } }
        /// Whom and what the row names is found with it.
        var namesAsItsRow: Bool { team == row.team && assignee == row.assignee }
    }

    private let environment: EnvironmentID
    private let places: TaskPlaces
    private var items: [Item] = []

    init(environment: EnvironmentID, places: TaskPlaces) {
        self.environment = environment
        self.places = places
    }

    /// Adds a task.
    ///
    /// - Throws: `JSONProblem` when the master cannot be read.
    mutating func add(_ task: FoundTask, _ subjects: [(decision: Int, realm: Int32)]) throws(JSONProblem) {
        items.append(try Item(task, subjects))
    }

    // MARK: Loading

    private func teamKey(_ item: Item) -> ObjectKey? { item.team.map(places.team) }
    private func personKey(_ item: Item) -> ObjectKey? { item.assignee.map(places.person) }

    private func membershipKey(_ item: Item) -> ObjectKey? {
        guard let team = item.team, let assignee = item.assignee else { return nil }
        return places.membership(of: assignee, in: team)
    }

    /// Reads where they are whom and what masters name since they were decided last, in one round trip.
    mutating func load(on connection: inout Connection) throws {
        let new = items.indices.filter { !items[$0].namesAsItsRow }
        let keys = Set(new.flatMap { [teamKey(items[$0]), personKey(items[$0]), membershipKey(items[$0])] })
        let wanted = keys.compactMap(\.self)
        let found = wanted.isEmpty ? [:] : try Presence.byKey(connection.run(Presence.load(wanted, in: environment)))
        for index in new {
            func presence(_ key: ObjectKey?) -> Presence { key.flatMap { found[$0] } ?? Presence() }
            let item = items[index]
            items[index].named = NamedPresences(
                team: presence(teamKey(item)), person: presence(personKey(item)),
                membership: presence(membershipKey(item)))
        }
    }

    // MARK: Deciding

    private func facts(_ item: Item, _ fields: JSONObject) -> TaskFacts {
        var facts = TaskFacts(
            master: .init(progress: TaskProgress(of: fields), editPosition: item.found.master.editPosition))
        // A copy that cannot be read says nothing, and is written anew.
        if let bytes = item.found.copy.fields?.bytes, let fields = try? JSONObject(bytes) {
            facts.copy = .init(progress: TaskProgress(of: fields), editPosition: item.found.copy.editPosition)
        }
        if item.row.version > 0 { facts.agreed = item.row.progress }
        facts.team = item.team.map { .init(id: $0, isThere: item.named.team.isThere) }
        facts.assignee = item.assignee.map { .init(id: $0, isThere: item.named.person.isThere) }
        facts.isMember = item.named.membership.isThere
        (facts.isOld, facts.isVeryOld) = (item.row.isOld, item.row.isVeryOld)
        return facts
    }

    /// The e-mail addresses of those in whose own realms copies are to be.
    private func emails(
        for decisions: some Sequence<TaskDecision>, on connection: inout Connection
    ) throws -> [UUID: String] {
        let people = decisions.compactMap { if case .person(let id) = $0.place { id } else { nil } }
        if people.isEmpty { return [:] }
        let rows = try connection.run(People.emails(of: Set(people), in: environment))
        return Dictionary(uniqueKeysWithValues: try rows.decode(UUID.self, String.self).map { ($0, $1) })
    }

    private func path(_ decision: TaskDecision, _ emails: [UUID: String]) -> RealmPath? {
        if decision.isArchived { return .archive }
        return switch decision.place {
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
        let decisions = items.map { item in item.fields.map { TaskRule.decide(facts(item, $0)) } }
        let emails = try emails(for: decisions.compactMap(\.self), on: &connection)
        let paths = decisions.map { $0.flatMap { path($0, emails) } }
        let realms = try directory.ids(
            of: Set(paths.compactMap(\.self)), in: environment, create: true, on: &connection)
        var (rows, dead) = (TaskRows(), [Int: String]())
        for (index, item) in items.enumerated() {
            do {
                try write(item, decisions[index], in: paths[index].flatMap { realms[$0] }, &batch, &rows)
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
        if let decision, let stored = item.found.master.fields {
            let fields = try fields(item, decision) ?? stored
            if decision.isArchived {
                archive(fields, item, in: realm, &batch)
                rows.gone.append((item.task, item.decision))
            } else {
                if fields != stored { batch.put(places.master(item.task), fields, decision: item.decision) }
                place(fields, item, in: realm, &batch)
                var row = item.row
                (row.realm, row.team, row.assignee) = (realm, decision.team, decision.assignee)
                row.progress = decision.progress
                if row.version == 0 || row != item.row { rows.kept.append((item.task, row, item.decision)) }
            }
        } else if item.row.version > 0 {
            deleteCopy(of: item, &batch)
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
        let named = [
            (teamKey(item), item.named.team), (personKey(item), item.named.person),
            (membershipKey(item), item.named.membership),
        ]
        for (decision, realm) in item.subjects {
            let isAboutCopy = realm != places.manager && realm == item.row.realm
            if isAboutCopy { expectCopy(of: item, decision, &batch) }
            batch.expect(places.master(item.task), at: item.found.master.position, decision: decision)
            if !isAboutCopy { expectCopy(of: item, decision, &batch) }
            for (key, presence) in named {
                if let key { batch.expect(key, at: presence.position, decision: decision) }
            }
            rows.versions.append((item.task, item.row.version, decision))
        }
    }

    private func expectCopy(of item: Item, _ decision: Int, _ batch: inout WriteBatch) {
        if let copy = item.copy { batch.expect(copy, at: item.found.copy.position, decision: decision) }
    }

    /// The master as it is to be, and the copy; `nil`: as the master is.
    private func fields(_ item: Item, _ decision: TaskDecision) throws(JSONProblem) -> CanonicalJSON? {
        guard let fields = item.fields else { return nil }
        var changes = decision.progress.fields(after: TaskProgress(of: fields))
        if decision.team == nil, item.team != nil { changes.append(("team", "null")) }
        if decision.assignee == nil, item.assignee != nil { changes.append(("assignee", "null")) }
        if changes.isEmpty { return nil }
        let patch = changes.map { (key: $0.key, value: Array($0.json.utf8)[...]) }
        return try CanonicalJSON(fields.merging(try JSONObject(JSONObject.bytes(of: patch))))
    }

    private func deleteCopy(of item: Item, _ batch: inout WriteBatch) {
        if let copy = item.copy, item.found.copy.fields != nil { batch.delete(copy, decision: item.decision) }
    }

    /// Has the copy be where it is to be, and nowhere else.
    private func place(_ fields: CanonicalJSON, _ item: Item, in realm: Int32?, _ batch: inout WriteBatch) {
        if item.row.realm != realm { deleteCopy(of: item, &batch) }
        guard let realm, item.row.realm != realm || item.found.copy.fields != fields else { return }
        batch.put(ObjectKey(realm: realm, kind: .fieldTask, id: item.task), fields, decision: item.decision)
    }

    /// The master goes to the archive; its copy goes with it.
    private func archive(_ fields: CanonicalJSON, _ item: Item, in archive: Int32?, _ batch: inout WriteBatch) {
        guard let archive else { return }
        deleteCopy(of: item, &batch)
        batch.put(ObjectKey(realm: archive, kind: .fieldTask, id: item.task), fields, decision: item.decision)
        batch.delete(places.master(item.task), decision: item.decision)
    }
}
