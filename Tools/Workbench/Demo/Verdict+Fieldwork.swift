import Essentials
import FoundationEssentials
import Model

extension Verdict {
    /// Checks masters, memberships and calendars against the plan, and copies against a direct evaluation of what
    /// people wrote.
    ///
    /// - Parameter own: The people's own realms, by number.
    mutating func compare(_ plan: FieldworkPlan, _ reading: FieldworkReading, own: [RealmPath]) {
        let snapshot = reading.snapshot
        for count in Count.fieldwork { counts[count] = 0 }
        for line in reading.differences() { note("fan-out", "copies", line) }
        for line in snapshot.dead.sorted() { note("services", "dead-lettered keys", line) }
        compare(plan.tasks, snapshot.masters, plan.people)
        let memberships = plan.crews.flatMap { crew in
            crew.members.map { Membership.id(of: plan.people[$0], in: crew.id) }
        }
        compare("\(RealmPath.common)", Kind.membership, snapshot, .common, Set(memberships))
        counts[.teams] = snapshot.objects(.team, in: .common).count
        counts[.positions] = snapshot.objects(.location, in: .manager).count
        compare(plan, snapshot, own)
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
        for id in strange.sorted() { note("task", id.text, "is there, but not planned") }
    }

    /// The difference from the plan, in a sentence.
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
            // One encoder wrote both, so absent fields are absent in both.
            let texts = [fields, expected].map { (try? JSONEncoder().encode($0)).map { Array($0) } ?? [] }
            let names = differingFields(texts[0], texts[1]).joined(separator: ", ")
            return "differs from what was planned: \(names)"
        }
    }

    private mutating func count(_ life: FieldworkPlan.TaskLife) {
        if life.definition.place?.latitude == nil { counts[.withoutCoordinates, default: 0] += 1 }
        let count: Count =
            switch life.end {
            case .open: .open
            case .completed: .completed
            case .referred: .referred
            case .cancelled: .cancelled
            }
        counts[count, default: 0] += 1
    }

    /// Checks that every calendar's appointments and links are in its owner's realm as of the last edit.
    private mutating func compare(_ plan: FieldworkPlan, _ snapshot: EnvironmentSnapshot, _ own: [RealmPath]) {
        var appointments: [RealmPath: [UUID: Appointment]] = [:]
        var links: [RealmPath: Set<UUID>] = [:]
        for edit in plan.calendars.compactMap(\.last) {
            let path = own[edit.owner]
            for item in edit.items {
                appointments[path, default: [:]][item.id] = item.appointment
                links[path, default: []].formUnion(
                    edit.recipients.map { SharedItem.id(of: item.id, with: plan.people[$0]) })
            }
        }
        for path in own {
            let (stored, planned) = (snapshot.objects(.appointment, in: path), appointments[path] ?? [:])
            for id in Set(stored.keys).union(planned.keys).sorted() {
                guard let difference = Self.difference(stored[id], planned[id]) else { continue }
                note("\(path)", "appointment \(id.text)", difference)
            }
            compare("\(path)", .sharedItem, snapshot, path, links[path] ?? [])
            counts[.appointments, default: 0] += stored.count
            counts[.shares, default: 0] += links[path]?.count ?? 0
        }
    }

    /// Checks that a realm has exactly the planned objects of a kind, by their ids.
    private mutating func compare(
        _ name: String, _ kind: Kind, _ snapshot: EnvironmentSnapshot, _ path: RealmPath, _ planned: Set<UUID>
    ) {
        let stored = Set(snapshot.objects(kind, in: path).keys)
        for id in planned.subtracting(stored).sorted() { note(name, "\(kind.rawValue) \(id.text)", "is not there") }
        for id in stored.subtracting(planned).sorted() {
            note(name, "\(kind.rawValue) \(id.text)", "is there, but not planned")
        }
    }
}
