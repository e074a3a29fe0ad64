package import FoundationEssentials
package import Model
package import Postgres

/// Where an environment stands.
package struct EnvironmentCounter: Sendable, Equatable {
    /// Changes when the database was restored or failed over with loss.
    package var generation: Int64
    package var position: Int64
    /// Tombstones and pointers at or below this position may be gone.
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
        generation = try row.value(0)
        position = try row.value(1)
        compactedPosition = try row.value(2)
    }
}

/// Statements that read an environment's changes. All are bounded, and none holds a snapshot while a socket is written.
package enum Feed {
    /// The change log after a position, in position order, whatever the realm.
    ///
    /// Rows: position, realm_id, kind, id, edit_position, fields, is_current, traceparent, changed_at. A pointer whose
    /// object has moved on, or is not of `kinds`, has `is_current` false: it only tells how far the page reaches. The
    /// LIMIT stands in the subquery, before the join: outside it the plan was 20 times slower. The object is looked up
    /// by its whole key whatever the statistics say (`LATERAL … OFFSET 0`): while they knew nothing of an environment
    /// that was filling, the planner joined on the environment alone, and the statement timed out.
    package static func changes(
        in environment: EnvironmentID, after position: Int64, kinds: [Kind], countMax: Int
    ) -> Statement {
        """
        SELECT c.position, c.realm_id, c.kind, c.id, o.edit_position, o.fields, o.position IS NOT NULL, c.traceparent,
            c.changed_at
        FROM (
            SELECT * FROM realm.change WHERE environment_id = \(environment.rawValue) AND position > \(position)
            ORDER BY position LIMIT \(Int64(countMax))
        ) c
        LEFT JOIN LATERAL (
            SELECT o.* FROM realm.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = c.realm_id AND o.kind = c.kind
                AND o.id = c.id
            OFFSET 0
        ) o ON o.position = c.position AND c.kind = ANY (\(kinds.map(\.rawValue)))
        ORDER BY c.position
        """
    }

    /// A page of a realm in key order: the objects that changed after a position.
    ///
    /// - Parameters:
    ///   - key: The last key of the page before, or `nil` for the first page.
    ///   - includingTombstones: A device that holds nothing need not be told what is gone.
    package static func page(
        of realm: Int32, in environment: EnvironmentID, after key: (kind: String, id: UUID)?,
        changedAfter position: Int64,
        includingTombstones: Bool, countMax: Int
    ) -> Statement {
        """
        SELECT realm_id, kind, id, position, edit_position, fields FROM realm.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(realm)
            AND (kind, id) > (\(key?.kind ?? "") COLLATE "C", \(key?.id ?? UUID.zero)) AND position > \(position)
            AND (\(includingTombstones) OR NOT deleted)
        ORDER BY kind, id LIMIT \(Int64(countMax))
        """
    }
}

extension UUID {
    /// Below every object's id.
    package static var zero: UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) }
}
