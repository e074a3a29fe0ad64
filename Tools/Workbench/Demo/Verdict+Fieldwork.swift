import Essentials
import FoundationEssentials
import Model

extension Verdict {
    /// How tasks and calendars ended.
    struct Fieldwork: Equatable, Encodable, Sendable {
        var teams = 0
        var completed = 0
        var open = 0
        var referred = 0
        var cancelled = 0
        var withoutCoordinates = 0
        var appointments = 0
        var shares = 0
        var positions = 0

        /// For people, with their names.
        var rows: [(name: String, count: Int)] {
            [
                ("teams", teams), ("tasks completed", completed), ("tasks open", open),
                ("tasks without their team", referred), ("tasks deleted", cancelled),
                ("of all tasks without coordinates", withoutCoordinates), ("last positions", positions),
                ("appointments", appointments), ("shares of them", shares),
            ]
        }
    }

    /// Masters, memberships and calendars must be as planned, and copies as whoever reads what people wrote expects
    /// them.
    ///
    /// - Parameter own: The people's own realms, by number.
    mutating func compare(_ work: DemoFieldwork, _ reading: FieldworkReading, own: [RealmPath]) {
        let snapshot = reading.snapshot
        for line in reading.differences() { note("fan-out", "copies", line) }
        for line in snapshot.dead.sorted() { note("services", "dead keys", line) }
        compare(work.plan.tasks, snapshot.masters, work.people)
        let memberships = work.plan.crews.flatMap { crew in
            crew.members.map { Membership.id(of: work.people[$0], in: crew.id) }
        }
        compare("\(RealmPath.common)", Kind.membership, snapshot, .common, Set(memberships))
        fieldwork.teams = snapshot.objects(.team, in: .common).count
        fieldwork.positions = snapshot.objects(.location, in: .manager).count
        compare(work, snapshot, own)
    }

    private mutating func compare(
        _ tasks: [FieldworkPlan.TaskLife], _ masters: [UUID: JSONObject], _ people: [UUID]
    ) {
        for life in tasks {
            let expected = life.expected(people)
            if let difference = Self.difference(masters[life.id], expected) {
                note("task", life.id.text, difference)
            } else {
                count(life)
            }
        }
        let strange = Set(masters.keys).subtracting(tasks.map(\.id))
        for id in strange.sorted() { note("task", id.text, "is there, and nobody planned it") }
    }

    /// What is not as planned, in a sentence.
    private static func difference<Fields: KindFields>(_ stored: JSONObject?, _ expected: Fields?) -> String? {
        switch (stored, expected) {
        case (nil, nil): return nil
        case (nil, .some): return "is not there"
        case (.some, nil): return "is there, and was to be deleted"
        case (.some(let stored), .some(let expected)):
            guard let fields = try? JSONDecoder().decode(Fields.self, from: Data(stored.bytes)) else {
                return "cannot be read"
            }
            guard fields != expected else { return nil }
            // Both written by one encoder: what is absent is absent in both.
            let texts = [fields, expected].map { (try? JSONEncoder().encode($0)).map { Array($0) } ?? [] }
            let names = JSONValue.differingFields(texts[0], texts[1]).joined(separator: ", ")
            return "differs from what was planned: \(names)"
        }
    }

    private mutating func count(_ life: FieldworkPlan.TaskLife) {
        if life.definition.place?.latitude == nil { fieldwork.withoutCoordinates += 1 }
        switch life.end {
        case .open: fieldwork.open += 1
        case .completed: fieldwork.completed += 1
        case .referred: fieldwork.referred += 1
        case .cancelled: fieldwork.cancelled += 1
        }
    }

    /// Every calendar's appointments, and their links, are in its owner's realm as its last edit has them.
    private mutating func compare(_ work: DemoFieldwork, _ snapshot: FieldworkSnapshot, _ own: [RealmPath]) {
        var appointments: [RealmPath: [UUID: Appointment]] = [:]
        var links: [RealmPath: Set<UUID>] = [:]
        for edit in work.plan.calendars.compactMap(\.edits.last) {
            let path = own[edit.owner]
            for item in edit.items {
                appointments[path, default: [:]][item.id] = item.appointment
                links[path, default: []].formUnion(
                    edit.recipients.map { SharedItem.id(of: item.id, with: work.people[$0]) })
            }
        }
        for path in own {
            let (stored, planned) = (snapshot.objects(.appointment, in: path), appointments[path] ?? [:])
            for id in Set(stored.keys).union(planned.keys).sorted() {
                guard let difference = Self.difference(stored[id], planned[id]) else { continue }
                note("\(path)", "appointment \(id.text)", difference)
            }
            compare("\(path)", .sharedItem, snapshot, path, links[path] ?? [])
            fieldwork.appointments += stored.count
            fieldwork.shares += links[path]?.count ?? 0
        }
    }

    /// There are exactly the planned objects of a kind in a realm; their ids say all of them.
    private mutating func compare(
        _ name: String, _ kind: Kind, _ snapshot: FieldworkSnapshot, _ path: RealmPath, _ planned: Set<UUID>
    ) {
        let stored = Set(snapshot.objects(kind, in: path).keys)
        for id in planned.subtracting(stored).sorted() { note(name, "\(kind.rawValue) \(id.text)", "is not there") }
        for id in stored.subtracting(planned).sorted() {
            note(name, "\(kind.rawValue) \(id.text)", "is there, and nobody planned it")
        }
    }
}
