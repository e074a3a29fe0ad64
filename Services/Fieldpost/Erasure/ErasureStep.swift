import Postgres

/// The rows of a table that are erased together.
struct ErasureStep {
    /// The table's name with its schema; a constant of this program.
    let table: String
    /// The content, for the report.
    let content: String
    let condition: Statement
    /// The clause `SET` with the new values; `nil`: the rows are deleted.
    var changes: Statement?
    /// Whether the rows are deleted under the lock of the environment's counter, and checked again at the end. They are
    /// found by an index, so the lock is short.
    var isGuarded = false
    /// Whether the rows are found by references of objects, and are erased before these objects.
    var precedesObjects = false

    private var name: Statement { Statement(stringLiteral: table) }

    /// Counts the rows. Rows: the number.
    var count: Statement { "SELECT count(*) FROM \(name) WHERE \(condition)" }

    /// Erases the next rows; the number is the statement's affected count.
    func page(countMax: Int64) -> Statement {
        let rows: Statement = "ctid = ANY (ARRAY(SELECT ctid FROM \(name) WHERE \(condition) LIMIT \(countMax)))"
        guard let changes else { return "DELETE FROM \(name) WHERE \(rows)" }
        return "UPDATE \(name) \(changes) WHERE \(rows)"
    }
}
