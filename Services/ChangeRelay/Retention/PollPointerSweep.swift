import Essentials
import Model
import ObjectStore
import Postgres

/// Pointers to polls, which nobody follows once they are published: no device opens the realm of the polls, and what is
/// published again is published from the objects. There may be more of them than of all other changes: one for each
/// person and run.
struct PollPointerSweep: Sweep {
    /// Pointers looked at in one part.
    private static let pageCountMax: Int64 = 5_000

    let name = "poll pointers"
    let intervalMax = Duration.seconds(60)
    let keep: Duration
    /// Up to where each environment's pointers were looked at; after a start, all are once more.
    private var swept: [Int32: Int64] = [:]
    private var waiting: [Int32] = []

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweptPart {
        guard let environment = waiting.last else {
            waiting = try connection.run("SELECT environment_id FROM realm.relay").decode(Int32.self)
            return SweptPart(removedCount: 0, isLast: waiting.isEmpty)
        }
        let (removedCount, count, last) = try connection.run(page(of: environment, after: swept[environment] ?? 0))[0]
            .decode(Int64.self, Int64.self, Int64?.self)
        if let last { swept[environment] = last }
        if count < Self.pageCountMax { waiting.removeLast() }
        return SweptPart(removedCount: Int(removedCount), isLast: waiting.isEmpty)
    }

    /// Rows: how many were removed, how many were old enough, the last of these.
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
