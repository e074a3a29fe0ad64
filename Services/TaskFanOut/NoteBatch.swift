import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The notes of one batch: loads their state, and writes the decisions.
///
/// Each note has one decision, for any number of events: the first input writes, and all inputs have the same guards.
struct NoteBatch {
    /// The inputs about a note, each with the realm of the changed object.
    typealias Subjects = [(decision: Int, realm: Int32)]

    /// A row of `task.copy`, as far as notes depend on it.
    private struct CopyRow {
        var version: Int64 = 0
        var realm: Int32?
        var noteCount: Int64 = 0
    }

    let environment: EnvironmentID
    let fixedRealms: TaskRealms
    let archive: Int32
    /// The notes, each with its inputs.
    private let subjects: [UUID: Subjects]
    private var rows: [UUID: NoteRow] = [:]
    private var objects: [ObjectKey: RealmObject] = [:]
    /// The realms of each note that are loaded.
    private var realms: [UUID: Set<Int32>]
    /// The task of each note; none if the note was never processed and does not exist.
    private var tasks: [UUID: UUID] = [:]
    private var copies: [UUID: CopyRow] = [:]
    /// Masters and archived tasks.
    private var presences: [ObjectKey: Presence] = [:]

    init(_ subjects: [UUID: Subjects], environment: EnvironmentID, fixedRealms: TaskRealms, archive: Int32) {
        (self.environment, self.fixedRealms, self.archive) = (environment, fixedRealms, archive)
        self.subjects = subjects
        realms = subjects.mapValues { [fixedRealms.manager] + $0.map(\.realm) }.mapValues(Set.init)
    }

    private func key(_ note: UUID, in realm: Int32) -> ObjectKey { ObjectKey(realm: realm, kind: .taskNote, id: note) }

    private func task(_ task: UUID, in realm: Int32) -> ObjectKey {
        ObjectKey(realm: realm, kind: .fieldTask, id: task)
    }

    // MARK: Loading

    /// Loads the state in two or three round trips.
    mutating func load(on connection: inout Connection) throws {
        let keys = realms.flatMap { note, realms in realms.map { key(note, in: $0) } }
        var results = try connection.run([
            NoteStore.load(Array(subjects.keys), in: environment), RealmObject.load(keys, in: environment),
        ])
        rows = try NoteStore.rows(results[0])
        objects = try RealmObject.byKey(results[1])
        for note in subjects.keys { tasks[note] = rows[note]?.task ?? namedTask(of: note) }
        guard !tasks.isEmpty else { return }
        let ids = Array(Set(tasks.values))
        results = try connection.run([
            NoteStore.loadTasks(ids, in: environment),
            Presence.load(
                ids.flatMap { [task($0, in: fixedRealms.manager), task($0, in: archive)] }, in: environment),
        ])
        for row in results[0] {
            var columns = row.columns
            let id: UUID = try columns.next()
            copies[id] = CopyRow(
                version: try columns.next(), realm: try columns.optional(Int32.self), noteCount: try columns.next())
        }
        presences = try Presence.byKey(results[1])
        try loadOtherRealms(on: &connection)
    }

    /// Loads the notes in the realms of their former and new copies.
    private mutating func loadOtherRealms(on connection: inout Connection) throws {
        var missing: [ObjectKey] = []
        for (note, id) in tasks {
            var others: Set<Int32> = []
            if let realm = rows[note]?.realm { others.insert(realm) }
            if let realm = copies[id]?.realm { others.insert(realm) }
            if case .archived = state(of: id) { others.insert(archive) }
            for realm in others where realms[note, default: []].insert(realm).inserted {
                missing.append(key(note, in: realm))
            }
        }
        guard !missing.isEmpty else { return }
        let loaded = try RealmObject.byKey(connection.run(RealmObject.load(missing, in: environment)))
        objects.merge(loaded) { _, new in new }
    }

    /// Returns the task that a note names, in `/manager` or where it was written.
    private func namedTask(of note: UUID) -> UUID? {
        let realms = [fixedRealms.manager] + (subjects[note] ?? []).map(\.realm)
        return realms.lazy.compactMap { objects[key(note, in: $0)]?.fields }
            .compactMap { (try? JSONObject($0.bytes))?.id(of: "task") }.first
    }

    private func state(of id: UUID) -> NoteFacts<CanonicalJSON>.TaskState {
        let master = presences[task(id, in: fixedRealms.manager)] ?? Presence()
        if master.isThere { return .existing(copyRealm: copies[id]?.realm) }
        if presences[task(id, in: archive)]?.isThere == true { return .archived }
        return master.position > 0 ? .deleted : .unknown
    }

    // MARK: Writing

    /// Decides about the notes and adds the changes to the batch.
    func write(to batch: inout WriteBatch) {
        var saved: [(note: UUID, task: UUID, realm: Int32?, position: Int64, decision: Int)] = []
        var removed: [(note: UUID, decision: Int)] = []
        var guards: [(note: UUID, version: Int64, isOverLimit: Bool, decision: Int)] = []
        var copyGuards: [(task: UUID, version: Int64, decision: Int)] = []
        for (note, subjects) in subjects {
            guard let decision = subjects.first?.decision else { continue }
            let (row, task) = (rows[note], tasks[note])
            expect(note, subjects, &batch)
            for subject in subjects {
                guards.append((note, row?.version ?? 0, row?.isOverLimit ?? false, subject.decision))
                if let task { copyGuards.append((task, copies[task]?.version ?? 0, subject.decision)) }
            }
            guard let task else { continue }
            switch NoteRule.decide(facts(note, task)) {
            case .unchanged: break
            case .deleted:
                put(nil, note, in: [], decision, &batch)
                if row != nil { removed.append((note, decision)) }
            case .archived(let fields):
                put(fields, note, in: [archive], decision, &batch)
                if row != nil { removed.append((note, decision)) }
            case .copied(let fields, let realm):
                put(fields, note, in: Set([fixedRealms.manager, realm].compactMap(\.self)), decision, &batch)
                guard row == nil || row?.realm != realm else { break }
                let position = realms[note, default: []].lazy.compactMap { objects[key(note, in: $0)]?.position }.max()
                saved.append((note, task, realm, position ?? 0, decision))
            }
        }
        if !guards.isEmpty { batch.expect(NoteStore.expect(guards, in: environment)) }
        if !copyGuards.isEmpty { batch.expect(TaskStore.expect(copyGuards, in: environment)) }
        if !removed.isEmpty { batch.append(NoteStore.remove(removed, in: environment)) }
        guard !saved.isEmpty else { return }
        batch.append(NoteStore.put(saved, in: environment))
        limit(saved.filter { rows[$0.note] == nil }.map { (task: $0.task, decision: $0.decision) }, &batch)
    }

    /// Re-queues the oldest notes of tasks that get new ones, above the limit.
    private func limit(_ new: [(task: UUID, decision: Int)], _ batch: inout WriteBatch) {
        guard !new.isEmpty else { return }
        batch.append(TaskCascade.notesOverLimit(of: new, in: environment))
        let counts = Dictionary(new.map { ($0.task, Int64(1)) }, uniquingKeysWith: +)
        let isOver = counts.contains { task, count in
            count + (copies[task]?.noteCount ?? 0) > Int64(TaskNote.countMax)
        }
        if isOver { batch.defersDueKeys = true }
    }

    /// Adds the preconditions of a note's inputs. The first one is the object of each event.
    private func expect(_ note: UUID, _ subjects: Subjects, _ batch: inout WriteBatch) {
        for (decision, subject) in subjects {
            let others = realms[note, default: []].subtracting([subject]).sorted()
            for realm in [subject] + others {
                let key = key(note, in: realm)
                batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
            }
            guard let id = tasks[note] else { continue }
            for realm in [fixedRealms.manager, archive] {
                let key = task(id, in: realm)
                batch.expect(key, at: presences[key]?.position ?? 0, decision: decision)
            }
        }
    }

    private func facts(_ note: UUID, _ task: UUID) -> NoteFacts<CanonicalJSON> {
        var sides: [Int32: NoteFacts<CanonicalJSON>.Side] = [:]
        for realm in realms[note] ?? [] {
            guard let object = objects[key(note, in: realm)] else { continue }
            sides[realm] = NoteFacts<CanonicalJSON>.Side(fields: object.fields, editPosition: object.editPosition)
        }
        return NoteFacts<CanonicalJSON>(
            manager: fixedRealms.manager, archive: archive, sides: sides,
            registration: rows[note].map { .init(realm: $0.realm, isOverLimit: $0.isOverLimit) },
            task: state(of: task))
    }

    /// Makes the note exist with the fields in exactly these realms.
    private func put(
        _ fields: CanonicalJSON?, _ note: UUID, in targets: Set<Int32>, _ decision: Int, _ batch: inout WriteBatch
    ) {
        for realm in realms[note, default: []].sorted() where !targets.contains(realm) {
            let key = key(note, in: realm)
            if objects[key]?.fields != nil { batch.delete(key, decision: decision) }
        }
        guard let fields else { return }
        for realm in targets.sorted() {
            let key = key(note, in: realm)
            if objects[key]?.fields != fields { batch.put(key, fields, decision: decision) }
        }
    }
}
