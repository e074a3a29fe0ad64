package import Model
import ObjectStore
package import Postgres

extension EnvironmentStore {
    /// A summary of an environment; its cost does not depend on the number of people.
    package struct Summary: Encodable, Sendable {
        package let id: Int32
        package let name: String
        package let position: Int64
        /// The position up to which the relay has published.
        package let published: Int64
        package let issuer: String?
        package let backend: String?
        package let backendURL: String?
        /// Keys that wait for a back end to recover; above zero while a circuit breaker is open.
        package let circuitCount: Int64
        /// The time since the circuit is open, the reason, and the time of the next attempt; `nil` if it is closed.
        package let circuitSince: String?
        package let circuitReason: String?
        package let circuitNextAt: String?
        /// Dead-lettered keys, which need manual action.
        package let deadCount: Int64
        /// Other deferred keys.
        package let waitingCount: Int64
        /// Whether a group has more than ``deferredCountMax`` keys: the three counts are then lower bounds.
        package let isMoreParked: Bool
        /// Devices that can renew their tokens without a login.
        package let deviceCount: Int64
        /// Tokens of devices that were renewed within the last hour.
        package let renewedCount: Int64
        /// The state of a transfer to or from another installation; `nil` if there is none.
        package let move: String?
    }

    /// The limit of deferred keys counted per environment and group, by the primary key.
    package static let deferredCountMax: Int64 = 5_000

    /// Returns the next environments, sorted by name, at most `countMax`.
    package static func page(
        after name: String, countMax: Int, on connection: inout Connection
    ) throws -> [Summary] {
        try connection.run(page(after: name, countMax: countMax)).map { row in
            var columns = row.columns
            let summary = Summary(
                id: try columns.next(), name: try columns.next(), position: try columns.next(),
                published: try columns.next(), issuer: try columns.next(), backend: try columns.next(),
                backendURL: try columns.next(),
                circuitCount: try columns.next(), circuitSince: try columns.next(),
                circuitReason: try columns.next(), circuitNextAt: try columns.next(),
                deadCount: try columns.next(), waitingCount: try columns.next(),
                isMoreParked: try columns.next(), deviceCount: try columns.next(), renewedCount: try columns.next(),
                move: try columns.next())
            try columns.end()
            return summary
        }
    }

    /// Returns the statement that selects the columns of ``Summary``.
    package static func page(after name: String, countMax: Int) -> Statement {
        """
        SELECT e.id, e.name, e.position, coalesce(r.position, 0), a.issuer, b.kind, b.url, p.circuit,
            \(utc("p.since")), p.reason, \(utc("p.next_at")), p.dead, p.waiting, p.is_more, d.count, d.renewed,
            \(moveState)
        FROM (SELECT * FROM realm.environment WHERE name > \(name) ORDER BY name LIMIT \(Int64(countMax))) e
        LEFT JOIN realm.relay r ON r.environment_id = e.id
        LEFT JOIN access.provider a ON a.environment_id = e.id
        LEFT JOIN backend.connection b ON b.environment_id = e.id
        LEFT JOIN realm.move m ON m.environment_id = e.id AND m.state <> 'begun'
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(circuit), 0)::int8 AS circuit, coalesce(sum(dead), 0)::int8 AS dead,
                coalesce(sum(waiting), 0)::int8 AS waiting, min(since) AS since, max(next_at) AS next_at,
                (array_agg(reason ORDER BY next_at DESC NULLS LAST))[1] AS reason,
                coalesce(bool_or(count > \(deferredCountMax)), false) AS is_more
            FROM unnest(\(Services.all.map(\.name))) AS g(name) CROSS JOIN LATERAL (
                SELECT count(*) AS count, count(*) FILTER (WHERE is_circuit AND NOT is_dead) AS circuit,
                    count(*) FILTER (WHERE is_dead) AS dead,
                    count(*) FILTER (WHERE NOT is_circuit AND NOT is_dead) AS waiting,
                    min(parked_at) FILTER (WHERE is_circuit AND NOT is_dead) AS since,
                    max(next_at) FILTER (WHERE is_circuit AND NOT is_dead) AS next_at,
                    (array_agg(reason ORDER BY next_at DESC) FILTER (WHERE is_circuit AND NOT is_dead))[1] AS reason
                FROM (
                    SELECT is_circuit, is_dead, parked_at, next_at, reason FROM pipeline.parked
                    WHERE group_name = g.name AND environment_id = e.id LIMIT \(deferredCountMax + 1)
                ) k
            ) k
        ) p
        CROSS JOIN LATERAL (
            SELECT count(*) AS count, count(*) FILTER (WHERE used_at > now() - interval '1 hour') AS renewed
            FROM onboarding.refresh_token
            WHERE environment_id = e.id AND newest IS NOT NULL AND revoked_at IS NULL
        ) d
        ORDER BY e.name
        """
    }

    /// Returns a time as text of RFC 3339.
    private static func utc(_ column: StaticString) -> Statement {
        #"to_char(\#(sql: column) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"#
    }

    /// Returns the number of the environment with this name; `nil` if there is none.
    package static func number(of name: String, on connection: inout Connection) throws -> EnvironmentID? {
        try connection.run("SELECT id FROM realm.environment WHERE name = \(name)").decode(EnvironmentID.self).first
    }
}
