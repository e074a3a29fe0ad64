import AdminQueries
import CommandLineSupport
import Essentials
import FoundationEssentials

extension ParkedStore {
    static func table(_ rows: [Row], empty: String = "nothing is parked") -> Table {
        var table = Table(
            [
                ("GROUP", .left), ("ENVIRONMENT", .left), ("KEY", .left), ("STATE", .left), ("ATTEMPTS", .right),
                ("SINCE", .right), ("NEXT", .right), ("REASON", .left),
            ], empty: empty)
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        for row in rows {
            let since = Duration.milliseconds(now - row.parkedAt.millisecondsSinceEpoch)
            let next = Duration.milliseconds(max(0, row.nextAt.millisecondsSinceEpoch - now))
            table.add([
                row.group, row.environment ?? "-", row.key, row.state.rawValue, String(row.attempts),
                since.shortText, row.state == .dead ? "-" : next.shortText,
                row.reason,
            ])
        }
        return table
    }
}
