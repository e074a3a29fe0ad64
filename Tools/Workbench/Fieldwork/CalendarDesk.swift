import DeviceClient
import FoundationEssentials
import Model

/// Edits a calendar on its owners' devices. The next edit begins when all recipients have the last one, and former
/// recipients no longer have it.
struct CalendarDesk: Sendable {
    let calendar: FieldworkPlan.Calendar
    /// By the number of the person.
    let devices: [Device]
    /// The ids of the people's `Person` objects, by number.
    let people: [UUID]

    /// - Parameter before: If it has some of the calendar, only the final state is written.
    func work(before: EnvironmentSnapshot, onEdit: (_ isMade: Bool) -> Void) async throws {
        let isBegun = calendar.contains { edit in
            edit.items.contains { before.contains(ObjectID($0), in: devices[edit.owner].realm) }
        }
        guard !isBegun, let first = calendar.first else { return try await finish(onEdit) }
        var last = first
        for edit in calendar {
            if last.owner != edit.owner { try await empty(last.owner) }
            try await write(edit)
            try await awaitSeen(edit, after: last)
            last = edit
            onEdit(true)
        }
    }

    /// Only the last edit, wherever an earlier run was interrupted.
    private func finish(_ onEdit: (_ isMade: Bool) -> Void) async throws {
        guard let last = calendar.last else { return }
        for owner in Set(calendar.map(\.owner)).subtracting([last.owner]) { try await empty(owner) }
        try await write(last)
        try await awaitSeen(last, after: last)
        for _ in calendar { onEdit(false) }
    }

    private func empty(_ owner: Int) async throws {
        try await write(FieldworkPlan.CalendarEdit(owner: owner, recipients: [], items: []))
    }

    /// Enqueues the mutations that lead to the edit's state.
    private func write(_ edit: FieldworkPlan.CalendarEdit) async throws {
        let (device, realm) = (devices[edit.owner], devices[edit.owner].realm)
        try await device.until { $0.copy.contents[realm] != nil && $0.queue.count == 0 }
        // Including accepted mutations that are not in the copy yet.
        let shown = await device.contents[realm] ?? [:]
        var mutations: [Mutation] = []
        var links: Set<UUID> = []
        for item in edit.items {
            if shown[ObjectID(item)]?.decoded(as: Appointment.self) != item.appointment {
                mutations.append(try .put(.appointment, item.id, item.appointment))
            }
            for recipient in edit.recipients {
                let link = SharedItem.id(of: item.id, with: people[recipient])
                links.insert(link)
                guard shown[ObjectID(kind: .sharedItem, id: link)] == nil else { continue }
                mutations.append(
                    try .put(
                        .sharedItem, link, SharedItem(kind: .appointment, item: item.id, recipient: people[recipient])))
            }
        }
        let kept = Set(edit.items.map(\.id))
        let mine = Set(calendar.flatMap(\.items).map(\.id))
        for (object, held) in shown.sorted(by: { $0.key < $1.key }) {
            switch object.kind {
            // Its links end with it.
            case .appointment where mine.contains(object.id) && !kept.contains(object.id):
                mutations.append(.delete(.appointment, object.id))
            case .sharedItem where !links.contains(object.id):
                guard let item = held.decoded(as: SharedItem.self)?.item, kept.contains(item) else { continue }
                mutations.append(.delete(.sharedItem, object.id))
            default: continue
            }
        }
        try await device.enqueue(mutations)
    }

    /// Waits until the owner's and every recipient's device have the edit's state.
    private func awaitSeen(
        _ edit: FieldworkPlan.CalendarEdit, after last: FieldworkPlan.CalendarEdit
    ) async throws {
        let (owner, realm) = (people[edit.owner], devices[edit.owner].realm)
        try await devices[edit.owner].until { state in
            state.queue.count == 0
                && edit.items.allSatisfy {
                    state.copy[realm, ObjectID($0)]?.decoded(as: Appointment.self) == $0.appointment
                }
        }
        let own = await devices[edit.owner].copy
        for recipient in edit.recipients {
            let share = RealmPath.share(Share.id(of: owner, with: people[recipient]))
            try await devices[recipient].until { state in
                edit.items.allSatisfy { item in
                    state.copy[share, ObjectID(item)].map { $0.fields == own[realm, ObjectID(item)]?.fields } ?? false
                }
            }
        }
        let kept = Set(edit.items.map(\.id))
        for recipient in last.recipients {
            let isStill = last.owner == edit.owner && edit.recipients.contains(recipient)
            let gone = last.items.filter { !isStill || !kept.contains($0.id) }
            let share = RealmPath.share(Share.id(of: people[last.owner], with: people[recipient]))
            try await devices[recipient].until { state in
                gone.allSatisfy { state.copy[share, ObjectID($0)] == nil }
            }
        }
    }
}

extension ObjectID {
    fileprivate init(_ item: FieldworkPlan.CalendarItem) { self.init(kind: .appointment, id: item.id) }
}
