/// The facts about a note that the decision depends on; `Content` are its fields.
struct NoteFacts<Content: Equatable & Sendable>: Equatable, Sendable {
    /// The note in one realm.
    struct Side: Equatable, Sendable {
        /// `nil`: it was deleted there.
        var fields: Content?
        /// The position of the last write by a device or an integration.
        var editPosition: Int64 = 0
    }

    /// The stored state of a note that was processed before.
    struct Registration: Equatable, Sendable {
        /// The realm of the copy; `nil`: there was none.
        var realm: Int32?
        /// Whether the task has at least as many newer notes as the limit permits.
        var isOverLimit = false
    }

    /// The state of the note's task.
    enum TaskState: Equatable, Sendable {
        /// Neither the task nor its tombstone exists.
        case unknown
        case deleted
        case archived
        /// It has a master, and a copy in this realm, if any.
        case existing(copyRealm: Int32?)
    }

    let manager: Int32
    let archive: Int32
    /// The note by realm; none where neither it nor its tombstone exists.
    var sides: [Int32: Side]
    /// `nil`: the note was not processed before, or is finally deleted.
    var registration: Registration?
    var task: TaskState

    init(
        manager: Int32, archive: Int32, sides: [Int32: Side], registration: Registration? = nil,
        task: TaskState = .existing(copyRealm: nil)
    ) {
        (self.manager, self.archive) = (manager, archive)
        (self.sides, self.registration, self.task) = (sides, registration, task)
    }
}

/// The decision about a note.
enum NoteDecision<Content: Equatable & Sendable>: Equatable, Sendable {
    /// Nothing is written.
    case unchanged
    /// The note is removed from all realms and is no longer registered.
    case deleted
    /// The note moves to the archive and is no longer registered.
    case archived(Content)
    /// The note has these fields in `/manager` and in the copy's realm, if any, and is in no other.
    case copied(Content, realm: Int32?)
}

/// Decides about a note of a task.
enum NoteRule {
    /// A deletion on either side is final: it takes precedence over a concurrent edit.
    static func decide<Content>(_ facts: NoteFacts<Content>) -> NoteDecision<Content> {
        guard let content = content(facts) else { return facts.registration == nil ? .unchanged : .deleted }
        switch facts.task {
        case .unknown: return facts.registration == nil ? .unchanged : .deleted
        case .deleted: return .deleted
        case .archived: return .archived(content)
        case .existing(let realm):
            if facts.registration?.isOverLimit == true { return .deleted }
            return .copied(content, realm: realm)
        }
    }

    /// Returns the fields of the side that was edited last; `nil` if the note was deleted.
    ///
    /// A registered note has two sides, of which one may have been deleted. One that is missing without a tombstone was
    /// lost, and is written again. Objects in other realms are not the note's.
    private static func content<Content>(_ facts: NoteFacts<Content>) -> Content? {
        let realms: [Int32]
        if let registration = facts.registration {
            realms = [facts.manager] + (registration.realm.map { [$0] } ?? [])
            guard !realms.contains(where: { facts.sides[$0].map { $0.fields == nil } ?? false }) else { return nil }
        } else {
            // The archive's note is a copy.
            realms = [facts.manager] + facts.sides.keys.filter { $0 != facts.manager && $0 != facts.archive }.sorted()
        }
        var last: (fields: Content, editPosition: Int64)?
        for side in realms.compactMap({ facts.sides[$0] }) {
            guard let fields = side.fields, side.editPosition > last?.editPosition ?? -1 else { continue }
            last = (fields, side.editPosition)
        }
        return last?.fields
    }
}
