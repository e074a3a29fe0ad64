import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Removes the stored results of mutations of clients that have sent no new mutations for long: the app was
/// uninstalled, or the device is gone. The client's next number stays, so that a returning client loses and repeats
/// nothing; only the result of a repeated mutation has expired.
struct MutationResultSweep: Sweep {
    /// Maximum number of clients scanned per step.
    private static let clientCountMax: Int64 = 1_000
    /// Maximum number of results removed per step.
    private static let resultCountMax: Int64 = 2_000

    let name = "mutation results"
    let keep: Duration
    private var last = Client()

    private struct Client {
        var environment: Int32 = 0
        var person = Int32.min
        var id = UUID.zero
    }

    init(keep: Duration) { self.keep = keep }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        let (removedCount, environment, person, id) = try connection.run(page(after: last))[0]
            .decode(Int64.self, Int32?.self, Int32?.self, UUID?.self)
        // There may be more results of the same clients.
        if removedCount == Self.resultCountMax { return SweepResult(removedCount: Int(removedCount), isLast: false) }
        guard let environment, let person, let id else {
            last = Client()
            return SweepResult(removedCount: Int(removedCount), isLast: true)
        }
        last = Client(environment: environment, person: person, id: id)
        return SweepResult(removedCount: Int(removedCount), isLast: false)
    }

    /// Rows: the number of removed results, the last client scanned.
    private func page(after last: Client) -> Statement {
        """
        WITH page AS MATERIALIZED (
            SELECT environment_id, person_id, client_id, changed_at FROM device.client
            WHERE (environment_id, person_id, client_id) > (\(last.environment), \(last.person), \(last.id))
            ORDER BY environment_id, person_id, client_id LIMIT \(Self.clientCountMax)
        ), old AS MATERIALIZED (
            SELECT m.place
            FROM page p CROSS JOIN LATERAL (
                SELECT m.ctid AS place FROM device.mutation m
                WHERE m.environment_id = p.environment_id AND m.person_id = p.person_id AND m.client_id = p.client_id
                LIMIT \(Self.resultCountMax) FOR UPDATE SKIP LOCKED
            ) m
            WHERE p.changed_at < now() - make_interval(secs => \(keep.inSeconds)) LIMIT \(Self.resultCountMax)
        ), gone AS (
            DELETE FROM device.mutation WHERE ctid = ANY (ARRAY(SELECT place FROM old)) RETURNING 1
        )
        SELECT (SELECT count(*) FROM gone), l.environment_id, l.person_id, l.client_id
        FROM (SELECT) AS one LEFT JOIN LATERAL (
            SELECT environment_id, person_id, client_id FROM page
            ORDER BY environment_id DESC, person_id DESC, client_id DESC LIMIT 1
        ) l ON true
        """
    }
}
