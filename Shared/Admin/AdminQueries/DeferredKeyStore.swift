package import Audit
package import Essentials
import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// Queries of `pipeline.parked`, the deferred and dead-lettered keys, for operators.
package enum DeferredKeyStore {
    package struct Selection {
        /// Keys or ids of their objects; empty: all.
        let keys: [String]
        let group: String?
        let topic: String?
        let environment: Int32?
        /// A text that the reason contains, ignoring case.
        let reason: String?
        let isDead: Bool?
        /// Whether unreadable messages are excluded.
        package var isReadable = false

        package init(
            keys: [String] = [], group: String? = nil, topic: String? = nil, environment: Int32? = nil,
            reason: String? = nil, isDead: Bool? = nil
        ) {
            (self.keys, self.group, self.topic) = (keys, group, topic)
            (self.environment, self.reason, self.isDead) = (environment, reason, isDead)
        }

        /// A key ends with its object's id.
        private var ids: [String] { keys.compactMap { UUID(ascii: $0)?.text } }

        fileprivate var condition: Statement {
            """
            (\(keys.isEmpty) OR p.key = ANY (\(keys)) OR right(p.key, 36) = ANY (\(ids)))
                AND (\(group) IS NULL OR p.group_name = \(group)) AND (\(topic) IS NULL OR p.topic = \(topic))
                AND (\(environment) IS NULL OR p.environment_id = \(environment))
                AND (\(reason) IS NULL OR position(lower(\(reason)) IN lower(p.reason)) > 0)
                AND (\(isDead) IS NULL OR p.is_dead = \(isDead))
                AND (NOT \(isReadable) OR p.environment_id <> 0)
            """
        }
    }

    /// The primary key of a row.
    package struct Name {
        package struct Owner: Hashable {
            package let group: String
            package let environmentID: Int32
        }

        package let group: String
        package let environmentID: Int32
        package let key: String

        package init(group: String, environmentID: Int32, key: String) {
            (self.group, self.environmentID, self.key) = (group, environmentID, key)
        }

        package var owner: Owner { Owner(group: group, environmentID: environmentID) }
    }

    package struct Row: Encodable {
        package let group: String
        package let environmentID: Int32
        /// `nil` for an unreadable message, whose environment is unknown.
        package let environment: String?
        package let key: String
        package let subject: String
        package let topic: String
        package let partition: Int32
        package let reason: String
        package let state: State
        package let attempts: Int32
        package let parkedAt: Timestamp
        package let nextAt: Timestamp
        /// A version of the displayed state. It changes if the key is retried, or is deferred again: in an open circuit
        /// only for another reason.
        package let version: String

        private enum CodingKeys: String, CodingKey {
            case group, environment, key, subject, topic, partition, reason, state, attempts, nextAt, version
            case environmentID = "environmentId"
            case parkedAt = "deferredAt"
        }

        package enum State: String, Encodable, PostgresValue {
            /// Retried with exponential backoff.
            case waiting
            /// Retried when the back end recovers.
            case circuit
            /// Dead-lettered: needs manual action.
            case dead
        }
    }

    /// The current state of a key's object.
    package struct Object: Equatable {
        package let position: Int64
        /// JSON; `nil`: it is deleted.
        package let fields: String?
    }

    /// Returns the oldest rows of a selection.
    package static func load(_ selection: Selection, countMax: Int, on connection: inout Connection) throws -> [Row] {
        try connection.run(
            "\(rows) WHERE \(selection.condition) ORDER BY p.parked_at, p.key LIMIT \(Int64(countMax))"
        ).map { try Row($0) }
    }

    package static func count(_ selection: Selection, on connection: inout Connection) throws -> Int {
        Int(
            try connection.run("SELECT count(*) FROM pipeline.parked p WHERE \(selection.condition)")[0]
                .decode(Int64.self))
    }

    /// The version of a row. It excludes the time of the next retry, which changes when a worker takes the key.
    static let version: Statement = """
        left(md5(concat_ws(' ', p.group_name, p.environment_id, p.key,
            (extract(epoch FROM p.parked_at) * 1000000)::int8, p.attempts, p.is_dead, p.is_circuit, p.reason)), 12)
        """

    /// The columns that `Row` reads.
    private static let rows: Statement = """
        SELECT p.group_name, p.environment_id, e.name, p.key, p.subject, p.topic, p.partition, p.reason,
            CASE WHEN p.is_dead THEN 'dead' WHEN p.is_circuit THEN 'circuit' ELSE 'waiting' END AS state, p.attempts,
            p.parked_at, p.next_at, \(version)
        FROM pipeline.parked p LEFT JOIN realm.environment e ON e.id = p.environment_id
        """

    /// Maximum number of keys that one statement reads or changes.
    package static let pageCountMax = 1_000

    /// Reads all rows of a selection by pages, in the order of the primary key.
    package static func forEachPage(
        _ selection: Selection, on connection: inout Connection, _ body: ([Row], inout Connection) throws -> Void
    ) throws {
        var last = Name(group: "", environmentID: 0, key: "")
        while true {
            let page = try self.page(selection, after: last, countMax: pageCountMax, on: &connection)
            guard let newest = page.last else { return }
            last = newest.name
            try body(page, &connection)
        }
    }

    /// Returns one page of a selection, in the order of the primary key.
    package static func page(
        _ selection: Selection, after last: Name?, countMax: Int, on connection: inout Connection
    ) throws -> [Row] {
        let last = last ?? Name(group: "", environmentID: 0, key: "")
        return try connection.run(
            """
            \(rows)
            WHERE (p.group_name, p.environment_id, p.key) > (\(last.group), \(last.environmentID), \(last.key))
                AND \(selection.condition)
            ORDER BY p.group_name, p.environment_id, p.key LIMIT \(Int64(countMax))
            """
        ).map { try Row($0) }
    }

    /// - Returns: `nil` if the key is not deferred.
    package static func find(_ name: Name, on connection: inout Connection) throws -> Row? {
        try connection.run(
            """
            \(rows)
            WHERE p.group_name = \(name.group) AND p.environment_id = \(name.environmentID) AND p.key = \(name.key)
            """
        ).map { try Row($0) }.first
    }

    /// Returns the object of each row, in the same order; `nil` if it does not exist.
    package static func objects(_ rows: [Row], on connection: inout Connection) throws -> [Object?] {
        try objects(rows.map { ($0.subject, $0.environmentID) }, on: &connection)
    }

    static func objects(
        _ keys: [(subject: String, environmentID: Int32)], on connection: inout Connection
    ) throws -> [Object?] {
        let requested = keys.enumerated().compactMap { index, key in
            EventSubject(key.subject).map { (Int32(index), key.environmentID, $0) }
        }
        let rows = try connection.run(
            """
            SELECT n.number, o.position, o.fields
            FROM unnest(\(requested.map(\.0)), \(requested.map(\.1)), \(requested.map(\.2.realm.description)),
                \(requested.map(\.2.kind)), \(requested.map(\.2.id))) AS n(number, environment_id, path, kind, id)
            JOIN realm.realm r ON r.environment_id = n.environment_id AND r.path = n.path
            JOIN store.object o ON o.environment_id = r.environment_id AND o.realm_id = r.id AND o.kind = n.kind
                AND o.id = n.id
            """
        ).decode(Int32.self, Int64.self, String?.self)
        var objects = [Object?](repeating: nil, count: keys.count)
        for (index, position, fields) in rows { objects[Int(index)] = Object(position: position, fields: fields) }
        return objects
    }

    /// The keys of a group that wait for a back end, whose circuit breaker is open.
    package struct OpenCircuit: Equatable, Sendable {
        package let group: String
        package let keyCount: Int64
        /// The time when the first of them was deferred.
        package let since: Timestamp
        /// The time of the next attempt, if it is in the future: that of the key that was deferred last.
        package let nextAt: Timestamp
        /// The reason of the key that was deferred last.
        package let reason: String

        /// A description in one line.
        package func text(now: Timestamp = .now()) -> String {
            let wait = nextAt.millisecondsSinceEpoch - now.millisecondsSinceEpoch
            let next = wait > 0 ? "at \(nextAt)" : "with the next due key"
            return "open since \(since), \(keyCount) keys wait, next attempt \(next): \(reason)"
        }
    }

    /// Returns the open circuits of an environment by group.
    package static func openCircuits(
        in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [OpenCircuit] {
        try connection.run(
            """
            SELECT group_name, count(*), min(parked_at), max(next_at),
                (array_agg(reason ORDER BY next_at DESC, key))[1]
            FROM pipeline.parked WHERE environment_id = \(environment.rawValue) AND is_circuit AND NOT is_dead
            GROUP BY group_name ORDER BY group_name
            """
        ).decode(String.self, Int64.self, Timestamp.self, Timestamp.self, String.self)
            .map { OpenCircuit(group: $0, keyCount: $1, since: $2, nextAt: $3, reason: $4) }
    }

    // MARK: Changes by operators

    /// A key with the version that was displayed. A key that was deferred again meanwhile is unchanged.
    package struct Seen {
        package let name: Name
        package let version: String

        package init(_ name: Name, version: String) { (self.name, self.version) = (name, version) }
        package init(_ row: Row) { self.init(row.name, version: row.version) }
    }

    /// The result of a change.
    package struct Changed: Equatable {
        package var count = 0
        /// Number of conflicts: keys whose version differs, which are unchanged.
        package var otherCount = 0

        package init(count: Int = 0, otherCount: Int = 0) { (self.count, self.otherCount) = (count, otherCount) }

        package static func += (left: inout Changed, right: Changed) {
            left.count += right.count
            left.otherCount += right.otherCount
        }
    }

    /// Thrown for keys of a write-blocked environment, with a description in one line.
    package struct EnvironmentInMoveError: Error, CustomStringConvertible {
        package let description =
            "the environment is being moved or was moved to another installation: its keys cannot be changed here"
    }

    /// - Parameter keys: The keys. Those of unreadable messages are skipped: they cannot be processed.
    /// - Throws: ``EnvironmentInMoveError``.
    package static func retry(
        _ keys: [Seen], by administrator: Administrator, on connection: inout Connection
    ) throws -> Changed {
        try change(keys.filter { $0.name.environmentID != 0 }, .parkedRetried, by: administrator, on: &connection) {
            """
            UPDATE pipeline.parked p SET is_dead = false, is_circuit = false, attempts = 0, next_at = now()
            \($0) RETURNING p.key, p.reason
            """
        }
    }

    /// - Throws: ``EnvironmentInMoveError``.
    package static func discard(
        _ keys: [Seen], by administrator: Administrator, on connection: inout Connection
    ) throws -> Changed {
        try change(keys, .parkedDiscarded, by: administrator, on: &connection) {
            "DELETE FROM pipeline.parked p \($0) RETURNING p.key, p.reason"
        }
    }

    /// Changes the keys of each group and environment in one transaction, with an audit record for each changed key.
    private static func change(
        _ keys: [Seen], _ action: AuditRecord.Action, by administrator: Administrator,
        on connection: inout Connection, _ statement: (_ condition: Statement) -> Statement
    ) throws -> Changed {
        var changed = Changed()
        for (owner, keys) in Dictionary(grouping: keys, by: \.name.owner) {
            let (names, versions) = (keys.map(\.name.key), keys.map(\.version))
            let environment = owner.environmentID == 0 ? nil : EnvironmentID(rawValue: owner.environmentID)
            let rows: Statement = """
                p.group_name = \(owner.group) AND p.environment_id = \(owner.environmentID) AND p.key = ANY (\(names))
                """
            changed += try connection.transaction { transaction in
                let changedRows = try transaction.run(
                    statement(
                        """
                        WHERE \(rows) AND (p.key, \(version)) IN (SELECT * FROM unnest(\(names), \(versions)))
                        """)
                ).decode(String.self, String.self)
                // A key with the expected version that was not changed belongs to a write-blocked environment.
                let (writeBlockedCount, otherCount) = try transaction.run(
                    """
                    SELECT count(*) FILTER (WHERE is_expected), count(*) FILTER (WHERE NOT is_expected)
                    FROM (
                        SELECT (p.key, \(version)) IN (SELECT * FROM unnest(\(names), \(versions))) AS is_expected
                        FROM pipeline.parked p WHERE \(rows) AND p.key <> ALL (\(changedRows.map(\.0)))
                    ) p
                    """
                )[0].decode(Int64.self, Int64.self)
                if writeBlockedCount > 0 { throw EnvironmentInMoveError() }
                // Records the reason, because the row is deleted.
                let subjects = changedRows.map { key, reason in
                    (key, ["group": owner.group, "reason": AuditRecord.plain(reason)])
                }
                try transaction.run(administrator.audit(action, subjects, in: environment))
                return Changed(count: changedRows.count, otherCount: Int(otherCount))
            }
        }
        return changed
    }
}

extension DeferredKeyStore.Row {
    package var name: DeferredKeyStore.Name {
        DeferredKeyStore.Name(group: group, environmentID: environmentID, key: key)
    }

    /// Reads a row of ``DeferredKeyStore/load(_:countMax:on:)``.
    fileprivate init(_ row: Postgres.Row) throws(PostgresError) {
        var columns = row.columns
        self.init(
            group: try columns.next(), environmentID: try columns.next(), environment: try columns.next(),
            key: try columns.next(), subject: try columns.next(), topic: try columns.next(),
            partition: try columns.next(), reason: try columns.next(), state: try columns.next(),
            attempts: try columns.next(), parkedAt: try columns.next(), nextAt: try columns.next(),
            version: try columns.next())
        try columns.end()
    }
}
