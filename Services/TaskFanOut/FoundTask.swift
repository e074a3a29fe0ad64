import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A task as one look at PostgreSQL finds it.
struct FoundTask: Sendable {
    /// One of the task's two objects. A tombstone has no fields.
    struct Stored: Sendable {
        /// 0: there is not even a tombstone.
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
    let master: Stored
    let row: TaskRow
    /// Where the row says that it is.
    let copy: Stored
    /// Whom and what the row names.
    let named: NamedPresences

    /// Reads a row of ``TaskStore/load(_:_:_:in:)``.
    init(_ row: Row) throws(PostgresError) {
        var columns = row.columns
        task = try columns.next()
        master = try Stored(&columns)
        self.row = try TaskRow(&columns)
        copy = try Stored(&columns)
        named = try NamedPresences(
            team: Presence(&columns), person: Presence(&columns), membership: Presence(&columns))
        try columns.end()
    }
}

/// Whether a task's team and its assignee are there, and whether the one is in the other.
struct NamedPresences: Equatable, Sendable {
    var team = Presence()
    var person = Presence()
    var membership = Presence()
}
