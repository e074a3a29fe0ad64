import Model
import ObjectStore
import Postgres

/// Statements that compare objects with the order of positions, and with the readers of that order. Rows: as
/// ``Inconsistency`` reads them.
extension CheckSlice {
    /// The position up to which the change log may have been compacted.
    private var compacted: Statement {
        "(SELECT compacted_position FROM realm.environment WHERE id = \(environment.rawValue))"
    }

    /// Kinds whose pointers are kept. Pointers of polls are removed soon after they were published.
    private var retainedKinds: Statement {
        """
        SELECT number FROM (\(KindCatalogue.numbers(in: "\(environment.rawValue)"))) n
        WHERE number NOT IN (\(Kind.poll), \(Kind.defectPoll))
        """
    }

    /// Every object above the compaction floor has a pointer at its position, and no pointer is newer than its object.
    var changes: Statement {
        """
        SELECT r.path || '/' || coalesce(k.name, f.kind::text) || '/' || f.id, f.fault, f.id, f.position FROM (
            SELECT o.realm_id, o.kind, o.id, o.position,
                'the change log has no pointer to it at ' || o.position AS fault
            FROM realm.realm r CROSS JOIN (\(retainedKinds)) n CROSS JOIN LATERAL (
                SELECT * FROM store.object WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                    AND kind = n.number AND \(has("id")) AND position > \(compacted)
                OFFSET 0
            ) o
            WHERE r.environment_id = \(environment.rawValue) AND NOT EXISTS (
                SELECT FROM store.change c WHERE c.environment_id = o.environment_id AND c.position = o.position
                    AND c.realm_id = o.realm_id AND c.kind = o.kind AND c.id = o.id)
            UNION ALL
            SELECT c.realm_id, c.kind, c.id, c.position, 'the pointer at ' || c.position || ' has no object'
            FROM (
                SELECT compacted_position AS floor, position - compacted_position AS length
                FROM realm.environment WHERE id = \(environment.rawValue)
            ) e CROSS JOIN LATERAL (
                SELECT * FROM store.change WHERE environment_id = \(environment.rawValue)
                    AND position > e.floor + e.length / \(Int64(count)) * \(Int64(index))
                    AND (position <= e.floor + e.length / \(Int64(count)) * \(Int64(index + 1))
                        OR \(index + 1 == count))
                OFFSET 0
            ) c LEFT JOIN LATERAL (
                SELECT position FROM store.object WHERE environment_id = c.environment_id
                    AND realm_id = c.realm_id AND kind = c.kind AND id = c.id
                OFFSET 0
            ) o ON true
            WHERE coalesce(o.position, 0) < c.position AND c.kind IN (\(retainedKinds))
                AND c.kind <> \(Kind.seenRecord)
        ) f JOIN realm.realm r ON r.environment_id = \(environment.rawValue) AND r.id = f.realm_id
        LEFT JOIN realm.kind k ON k.number = f.kind
        LIMIT \(Int64(countMax))
        """
    }

    /// No stored response belongs to a mutation that is still expected, or to a position that was not allocated.
    var devices: Statement {
        """
        SELECT 'client ' || m.client_id, CASE
                WHEN c.client_id IS NULL THEN 'has stored responses but no client row'
                WHEN m.sequence >= c.next_sequence
                    THEN 'its mutation ' || m.sequence || ' has a response, but ' || c.next_sequence || ' is expected'
                ELSE 'its mutation ' || m.sequence || ' was accepted at ' || m.position
                    || ', which is not allocated' END,
            m.client_id, m.sequence
        FROM device.mutation m
        JOIN realm.environment e ON e.id = m.environment_id
        LEFT JOIN device.client c ON c.environment_id = m.environment_id AND c.person_id = m.person_id
            AND c.client_id = m.client_id
        WHERE m.environment_id = \(environment.rawValue) AND \(has("m.client_id"))
            AND (c.client_id IS NULL OR m.sequence >= c.next_sequence OR m.position > e.position)
        LIMIT \(Int64(countMax))
        """
    }

    /// Each deferred key belongs to an object or a tombstone. One statement for all.
    ///
    /// A key that was never tried is excluded: a worker defers the keys of people whose team changed without reading
    /// their objects. The first attempt removes it if there is none.
    var parked: Statement {
        """
        SELECT p.key, CASE WHEN p.is_dead THEN 'dead-lettered by ' ELSE 'deferred by ' END || p.group_name
            || ', but the object does not exist', i.id, 0::bigint
        FROM pipeline.parked p
        CROSS JOIN LATERAL (SELECT substring(p.subject from '[0-9a-f-]{36}$')::uuid AS id,
            substring(p.subject from '/([^/]+)/[^/]+$') AS kind,
            regexp_replace(p.subject, '/[^/]+/[^/]+$', '') AS path) i
        JOIN realm.kind k ON k.name = i.kind
        WHERE p.environment_id = \(environment.rawValue) AND \(has("i.id")) AND (p.is_dead OR p.attempts > 0)
            AND NOT EXISTS (
                SELECT FROM store.object WHERE environment_id = p.environment_id AND realm_id = \(realm("i.path"))
                    AND kind = k.number AND id = i.id)
        LIMIT \(Int64(countMax))
        """
    }

    /// The relay has not published beyond the counter.
    var relay: Statement {
        """
        SELECT 'relay', CASE WHEN r.generation > e.generation THEN 'has generation ' || r.generation
                || ', but the counter has ' || e.generation
            ELSE 'is at position ' || r.position || ', but the counter is at ' || e.position END,
                \(ids.lowerBound), r.position
        FROM realm.relay r JOIN realm.environment e ON e.id = r.environment_id
        WHERE r.environment_id = \(environment.rawValue) AND \(index == 0)
            AND (r.generation > e.generation OR r.generation = e.generation AND r.position > e.position)
        """
    }

    /// Returns the statement that checks a target.
    func statement(_ target: CheckTarget) -> Statement {
        switch target {
        case .tasks: "(\(tasks)) UNION ALL (\(notes))"
        case .positions: positions
        case .shares: shares
        case .memberships: memberships
        case .catalogues: catalogues
        case .statuses: statuses
        case .submissions: submissions
        case .defects: defects
        case .images: images
        case .changes: changes
        case .devices: devices
        case .parked: parked
        case .relay: relay
        }
    }
}
