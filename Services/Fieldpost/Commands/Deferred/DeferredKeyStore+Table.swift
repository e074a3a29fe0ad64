import AdminQueries
import CommandLineSupport
import Essentials
import FoundationEssentials

extension DeferredKeyStore {
    static func table(_ rows: [Row], empty: String = "no deferred keys") -> Table {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        return Table(
            ["GROUP", "ENVIRONMENT", "KEY", "STATE", .right("ATTEMPTS"), .right("AGE"), .right("RETRY IN"), "REASON"],
            rows, empty: empty
        ) { row in
            let since = Duration.milliseconds(now - row.parkedAt.millisecondsSinceEpoch)
            let next = Duration.milliseconds(max(0, row.nextAt.millisecondsSinceEpoch - now))
            return [
                row.group, row.environment ?? "-", row.key, row.state.rawValue, String(row.attempts), since.shortText,
                row.state == .dead ? "-" : next.shortText, row.reason,
            ]
        }
    }
}
