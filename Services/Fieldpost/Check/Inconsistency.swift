import CommandLineSupport
import FoundationEssentials
import Model
import Postgres

/// An object or row that contradicts the data that it is derived from.
struct Inconsistency: Encodable, Hashable {
    let environment: String
    let part: CheckTarget
    /// The subject of the event with which the owning service reprocesses it, if there is one; otherwise its location.
    let key: String
    let fault: String
    /// The object's id, which also selects the partition.
    let id: UUID
    /// The position at the time of the check. If it changes between the passes, work was in flight.
    let position: Int64
    /// Work in flight that may resolve it; `nil` if none is known.
    var pending: String?

    /// Reads the columns key, fault, id, position.
    init(_ row: Row, _ part: CheckTarget, in environment: String) throws(PostgresError) {
        var columns = row.columns
        (self.environment, self.part) = (environment, part)
        (key, fault) = (try columns.next(), try columns.next())
        (id, position) = (try columns.next(), try columns.next())
        try columns.end()
    }

    private var text: String { pending.map { "\(fault) (may be in flight: \($0))" } ?? fault }

    static func table(_ rows: [Inconsistency]) -> Table {
        Table(["ENVIRONMENT", "CHECK", "KEY", "FAULT"], rows) { [$0.environment, $0.part.rawValue, $0.key, $0.text] }
    }
}
