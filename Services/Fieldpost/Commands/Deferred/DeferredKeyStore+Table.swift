import AdminQueries
import CommandLineSupport
import Essentials
import FoundationEssentials

extension DeferredKeyStore {
    static func table(_ rows: [Row], empty: String = "no deferred keys") -> Table {
        var table = Table(
            [
                ("GROUP", .left), ("ENVIRONMENT", .left), ("KEY", .left), ("STATE", .left), ("ATTEMPTS", .right),
                ("AGE", .right), ("RETRY IN", .right), ("REASON", .left),
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
