/// The visibility of other transactions' commits.
package enum Isolation: Sendable {
    /// Each statement sees the commits before its start.
    case readCommitted
    /// All statements see one snapshot; the transaction is read-only.
    case snapshot

    var begin: Statement {
        switch self {
        case .readCommitted: "BEGIN"
        case .snapshot: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        }
    }
}
