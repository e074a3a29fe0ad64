import CommandLineSupport
import FoundationEssentials
import Model
import Postgres

/// Something that is not as it follows from other data.
struct Inconsistency: Encodable, Hashable {
    let environment: String
    let part: CheckedPart
    /// The subject of the event by which the owning service decides it, where there is such a service; else the place.
    let key: String
    let fault: String
    /// What spreads keys over partitions, and identifies the object.
    let id: UUID
    /// Of what was seen: when another look sees another position, something was on its way.
    let position: Int64
    /// What is still on its way and may take it away; `nil`: nothing is known of.
    var pending: String?

    /// Reads the columns key, fault, id, position.
    init(_ row: Row, _ part: CheckedPart, in environment: String) throws(PostgresError) {
        var columns = row.columns
        (self.environment, self.part) = (environment, part)
        (key, fault) = (try columns.next(), try columns.next())
        (id, position) = (try columns.next(), try columns.next())
        try columns.end()
    }

    private var text: String { pending.map { "\(fault) (may be on its way: \($0))" } ?? fault }

    static func table(_ rows: [Inconsistency], empty: String) -> Table {
        var table = Table(
            [("ENVIRONMENT", .left), ("WHAT", .left), ("KEY", .left), ("FAULT", .left)], empty: empty)
        for row in rows { table.add([row.environment, row.part.rawValue, row.key, row.text]) }
        return table
    }
}
