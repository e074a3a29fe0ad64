package import FoundationEssentials
package import Model
package import Postgres

/// The counter of an environment, its row of `realm.environment`.
package struct EnvironmentCounter: Sendable, Equatable {
    /// The statement that reads the active environments. Rows: the number.
    package static let all: Statement = "SELECT e.id FROM realm.environment e WHERE \(works) ORDER BY e.id"

    /// Whether the environment of the row `e` is active here. An environment that is being imported from another
    /// installation (decision 0069) has no generation before it is activated; nothing of it is published, swept or
    /// retried.
    package static let works: Statement = "e.generation > 0"

    /// The generation, which changes when the database was restored or failed over with loss.
    package var generation: Int64
    package var position: Int64
    /// The position at or below which tombstones and pointers may have been removed.
    package var compactedPosition: Int64

    package init(generation: Int64, position: Int64, compactedPosition: Int64) {
        self.generation = generation
        self.position = position
        self.compactedPosition = compactedPosition
    }

    /// Rows: generation, position, compacted_position.
    package static func load(_ environment: EnvironmentID) -> Statement {
        """
        SELECT generation, position, compacted_position FROM realm.environment WHERE id = \(environment.rawValue)
        """
    }

    package init(_ row: Row) throws(PostgresError) {
        (generation, position, compactedPosition) = try row.decode(Int64.self, Int64.self, Int64.self)
    }
}

/// The kinds that an environment declares, as far as a reader of its changes includes them.
package enum OwnKinds: Sendable {
    case none
    case all
    /// Those with a topic.
    case published

    /// Whether the kind of a row is among them.
    func includes(_ kind: Statement, in environment: EnvironmentID) -> Statement {
        switch self {
        case .none: "false"
        case .all: "\(kind) >= \(OwnKind.numbers.lowerBound)"
        case .published:
            """
            \(kind) IN (SELECT kind FROM realm.own_kind
                WHERE environment_id = \(environment.rawValue) AND topic IS NOT NULL)
            """
        }
    }
}

/// Statements that read an environment's changes. All are limited, and none holds a snapshot during network output.
package enum Feed {
    /// Reads the change log after a position, in position order, for all realms.
    ///
    /// Rows: position, realm_id, kind, id, edit_position, fields, is_current, traceparent, changed_at. `is_current` is
    /// false for a pointer whose object has changed since or is not of these kinds; such a row only shows how far the
    /// page reaches.
    ///
    /// The LIMIT must be in the subquery, before the join: outside it the plan was 20 times slower. The object is
    /// looked up by its complete key, independent of statistics (`LATERAL … OFFSET 0`): without statistics of an
    /// environment that was being filled, the planner joined on the environment alone, and the statement timed out.
    package static func changes(
        in environment: EnvironmentID, after position: Int64, kinds: [Kind], own: OwnKinds = .none, countMax: Int
    ) -> Statement {
        """
        SELECT c.position, c.realm_id, c.kind, c.id, o.edit_position, o.fields, o.position IS NOT NULL, c.traceparent,
            c.changed_at
        FROM (
            SELECT * FROM store.change WHERE environment_id = \(environment.rawValue) AND position > \(position)
            ORDER BY position LIMIT \(Int64(countMax))
        ) c
        LEFT JOIN LATERAL (
            SELECT o.* FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = c.realm_id AND o.kind = c.kind
                AND o.id = c.id
            OFFSET 0
        ) o ON o.position = c.position
            AND (c.kind = ANY (\(kinds)) OR \(own.includes("c.kind", in: environment)))
        ORDER BY c.position
        """
    }

    /// Reads a page of a realm in key order: the objects that changed after a position.
    ///
    /// - Parameters:
    ///   - key: The last key of the previous page; `nil` for the first page.
    ///   - includingTombstones: Whether to include tombstones, which a device without a copy does not need.
    package static func page(
        of realm: Int32, in environment: EnvironmentID, after key: (kind: Kind, id: UUID)?,
        changedAfter position: Int64,
        includingTombstones: Bool, countMax: Int
    ) -> Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND (kind <= \(Kind.numberMax) OR kind >= \(OwnKind.numbers.lowerBound))
            AND (kind, id) > (\(key?.kind.number ?? 0), \(key?.id ?? UUID.zero))
            AND position > \(position)
            AND (\(includingTombstones) OR NOT deleted)
        ORDER BY kind, id LIMIT \(Int64(countMax))
        """
    }

    /// Reads a page of all an environment's realms in key order (realm, kind, id): the existing objects that have not
    /// changed since a position.
    ///
    /// Rows: realm_id, path, kind, id, position, fields. One additional row, whose `kind` is null, contains the number
    /// of scanned realms (`position`) and the last of them (`realm_id`, null if there was none): unless the page has
    /// `countMax` objects, those realms are complete. Objects are in order.
    ///
    /// Each realm and kind is looked up by its key, starting at the end of the previous page (`LATERAL … ORDER BY id
    /// LIMIT`): a page reads at most `countMax` objects of each of `realmCountMax` realms × kinds, independent of
    /// statistics, and no other kinds.
    ///
    /// - Parameters:
    ///   - key: The last key of the previous page; `nil` for the first page.
    ///   - includingOwn: Whether all kinds that the environment declares are included.
    package static func page(
        in environment: EnvironmentID, after key: Cursor.Key?, kinds: [Kind], includingOwn: Bool = false,
        unchangedSince start: Int64, realmCountMax: Int, countMax: Int
    ) -> Statement {
        """
        WITH r AS MATERIALIZED (
            SELECT id, path FROM realm.realm
            WHERE environment_id = \(environment.rawValue) AND id >= \(key?.realm ?? 0)
            ORDER BY id LIMIT \(Int64(realmCountMax))
        )
        (SELECT p.realm_id, p.path, o.kind, o.id, o.position, o.fields
        FROM (
            SELECT r.id AS realm_id, r.path, k.kind,
                CASE WHEN r.id = \(key?.realm ?? 0) AND k.kind = \(key?.kind.number ?? 0) THEN \(key?.id ?? UUID.zero)
                    ELSE \(UUID.zero) END AS after
            FROM r CROSS JOIN (
                SELECT unnest(\(kinds)) AS kind
                UNION ALL
                SELECT kind FROM realm.own_kind WHERE \(includingOwn) AND environment_id = \(environment.rawValue)
            ) k
            WHERE r.id > \(key?.realm ?? 0) OR k.kind >= \(key?.kind.number ?? 0)
            OFFSET 0
        ) p
        CROSS JOIN LATERAL (
            SELECT o.kind, o.id, o.position, o.fields FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = p.realm_id AND o.kind = p.kind
                AND o.id > p.after AND NOT o.deleted AND o.position <= \(start)
            ORDER BY o.id LIMIT \(Int64(countMax))
        ) o
        ORDER BY p.realm_id, o.kind, o.id LIMIT \(Int64(countMax)))
        UNION ALL
        SELECT max(id), NULL, NULL, NULL, count(*), NULL FROM r
        ORDER BY 1, 3 NULLS LAST, 4
        """
    }
}

extension UUID {
    /// The nil UUID, lower than every object's id.
    package static var zero: UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) }
}
