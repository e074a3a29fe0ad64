import Essentials
import Model
import ObjectStore
import Postgres

/// Removes pointers to polls, which are not needed after publication: no device opens their realm, and republication
/// reads the objects. There may be more of them than of all other changes: one for each person and run.
struct PollPointerSweep: Sweep {
    /// Maximum number of pointers scanned per step.
    private static let pageCountMax: Int64 = 5_000

    let name = "poll pointers"
    let intervalMax = Duration.seconds(60)
    let keep: Duration
    /// The position up to which each environment was scanned; reset at start.
    private var swept: [Int32: Int64] = [:]
    private var waiting: [Int32] = []

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        guard let environment = waiting.last else {
            waiting = try connection.run("SELECT environment_id FROM realm.relay").decode(Int32.self)
            return SweepResult(removedCount: 0, isLast: waiting.isEmpty)
        }
        let (removedCount, count, last) = try connection.run(page(of: environment, after: swept[environment] ?? 0))[0]
            .decode(Int64.self, Int64.self, Int64?.self)
        if let last { swept[environment] = last }
        if count < Self.pageCountMax { waiting.removeLast() }
        return SweepResult(removedCount: Int(removedCount), isLast: waiting.isEmpty)
    }

    /// Rows: the number of removed pointers, the number of old ones, the last old one.
    private func page(of environment: Int32, after position: Int64) -> Statement {
        """
        WITH page AS MATERIALIZED (
            SELECT ctid AS place, position, kind, changed_at FROM store.change
            WHERE environment_id = \(environment) AND position > \(position)
                AND position <= (SELECT position FROM realm.relay WHERE environment_id = \(environment))
            ORDER BY position LIMIT \(Self.pageCountMax)
        ), old AS (
            SELECT place, position, kind FROM page WHERE changed_at < now() - make_interval(secs => \(keep.inSeconds))
        ), gone AS (
            DELETE FROM store.change
            WHERE ctid = ANY (ARRAY(SELECT place FROM old WHERE kind = ANY (\([Kind.poll, .defectPoll])))) RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone), count(*), max(position) FROM old
        """
    }
}
