import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The stored state of a task, loaded in one query.
struct TaskSnapshot: Sendable {
    /// One of the task's two objects. A tombstone has no fields.
    struct ObjectState: Sendable {
        /// 0: it does not exist, and has no tombstone.
        var position: Int64 = 0
        var editPosition: Int64 = 0
        var fields: CanonicalJSON?

        init(_ columns: inout Columns) throws(PostgresError) {
            position = try columns.optional(Int64.self) ?? 0
            editPosition = try columns.optional(Int64.self) ?? 0
            fields = try columns.optional(CanonicalJSON.self)
        }
    }

    let task: UUID
    let master: ObjectState
    let row: TaskRow
    /// The copy in the row's realm.
    let copy: ObjectState
    /// The team, person and membership that the row references.
    let references: ReferencePresences

    /// Reads a row of ``TaskStore/load(_:_:_:in:)``.
    init(_ row: Row) throws(PostgresError) {
        var columns = row.columns
        task = try columns.next()
        master = try ObjectState(&columns)
        self.row = try TaskRow(&columns)
        copy = try ObjectState(&columns)
        references = try ReferencePresences(
            team: Presence(&columns), person: Presence(&columns), membership: Presence(&columns))
        try columns.end()
    }
}

/// Whether a task's team and its assignee exist, and whether the assignee is in the team.
struct ReferencePresences: Equatable, Sendable {
    var team = Presence()
    var person = Presence()
    var membership = Presence()
}
