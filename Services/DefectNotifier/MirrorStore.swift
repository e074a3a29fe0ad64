import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A defect's id, and the number of the realm with its mirror.
struct MirrorKey: Hashable {
    let defect: UUID
    let realm: Int32
}

/// The SQL of `defect.mirror`, and of obsolete objects in people's realms.
enum MirrorStore {
    /// The mirrors of some defects. Rows: defect, realm.
    static func keys(of defects: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT m.defect_id, m.realm_id FROM unnest(\(defects)) AS i(defect_id) CROSS JOIN LATERAL (
            SELECT defect_id, realm_id FROM defect.mirror
            WHERE environment_id = \(environment.rawValue) AND defect_id = i.defect_id
            OFFSET 0
        ) m
        """
    }

    static func realmsByDefect(_ rows: Rows) throws(PostgresError) -> [UUID: Set<Int32>] {
        var realms: [UUID: Set<Int32>] = [:]
        for (defect, realm) in try rows.decode(UUID.self, Int32.self) { realms[defect, default: []].insert(realm) }
        return realms
    }

    /// Mirrors of defects that no longer exist, except those written after a position; also mirrors in people's realms
    /// without a row in `defect.mirror`. Rows: defect, realm, the object's position (0: it does not exist), whether it
    /// is deleted.
    ///
    /// - Parameters:
    ///   - present: The defects that exist.
    ///   - realm: Limits the search to this realm; `nil`: all realms.
    static func obsolete(
        except present: Set<UUID>, in realm: Int32?, through position: Int64, countMax: Int,
        of environment: EnvironmentID
    ) -> Statement {
        let condition: Statement = realm.map { "AND realm_id = \($0)" } ?? ""
        let realms: Statement = realm.map { "AND r.id = \($0)" } ?? ""
        return """
            SELECT m.defect_id, m.realm_id, coalesce(o.position, 0), coalesce(o.deleted, true)
            FROM (
                SELECT defect_id, realm_id FROM defect.mirror
                WHERE environment_id = \(environment.rawValue) \(condition)
                UNION
                SELECT o.id, o.realm_id FROM realm.realm r CROSS JOIN LATERAL (
                    SELECT id, realm_id FROM store.object
                    WHERE environment_id = r.environment_id AND realm_id = r.id AND kind = \(Kind.defect)
                        AND NOT deleted
                    OFFSET 0
                ) o
                WHERE r.environment_id = \(environment.rawValue) AND starts_with(r.path, '/users/') \(realms)
            ) m LEFT JOIN LATERAL (
                SELECT position, deleted FROM store.object
                WHERE environment_id = \(environment.rawValue) AND realm_id = m.realm_id AND kind = \(Kind.defect)
                    AND id = m.defect_id
                OFFSET 0
            ) o ON true
            WHERE coalesce(o.position, 0) <= \(position)
                AND NOT EXISTS (SELECT FROM unnest(\(Array(present))) AS f(id) WHERE f.id = m.defect_id)
            LIMIT \(Int64(countMax))
            """
    }

    /// The mirrored records of one realm, the most recently written first. Rows: record, owner if it is assigned to the
    /// realm's person, submitter if they reported it; null otherwise.
    static func records(in realm: Int32, countMax: Int, of environment: EnvironmentID) -> Statement {
        """
        SELECT o.fields::json->>'record',
            CASE WHEN o.fields::json->>'isAssignedToMe' = 'true' THEN o.fields::json->>'owner' END,
            CASE WHEN o.fields::json->>'isReportedByMe' = 'true' THEN o.fields::json->>'submitter' END
        FROM defect.mirror m CROSS JOIN LATERAL (
            SELECT fields, position FROM store.object
            WHERE environment_id = m.environment_id AND realm_id = m.realm_id AND kind = \(Kind.defect)
                AND id = m.defect_id AND NOT deleted
            OFFSET 0
        ) o
        WHERE m.environment_id = \(environment.rawValue) AND m.realm_id = \(realm)
            AND o.fields::json->>'record' IS NOT NULL
        ORDER BY o.position DESC LIMIT \(Int64(countMax))
        """
    }

    static func add(_ mirrors: [MirrorKey], in environment: EnvironmentID, decision: Int) -> Statement {
        """
        INSERT INTO defect.mirror (environment_id, defect_id, realm_id)
        SELECT \(environment.rawValue), i.defect_id, i.realm_id
        FROM unnest(\(mirrors.map(\.defect)), \(mirrors.map(\.realm))) AS i(defect_id, realm_id)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ORDER BY 2, 3 ON CONFLICT DO NOTHING
        """
    }

    static func remove(_ mirrors: [MirrorKey], in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM defect.mirror m
        USING unnest(\(mirrors.map(\.defect)), \(mirrors.map(\.realm))) AS i(defect_id, realm_id)
        WHERE m.environment_id = \(environment.rawValue) AND m.defect_id = i.defect_id AND m.realm_id = i.realm_id
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    // MARK: Notices

    /// The notices of defects in some realms. Rows: realm, id, position, the time as stored.
    static func notices(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT o.realm_id, o.id, o.position, coalesce(o.fields::json->>'timestamp', '')
        FROM unnest(\(realms)) AS r(id) CROSS JOIN LATERAL (
            SELECT realm_id, id, position, fields FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = \(Kind.notice) AND NOT deleted AND starts_with(fields::json->>'code', 'defect-')
            OFFSET 0
        ) o
        """
    }

    /// Notices older than a time, compared as text: the format sorts in time order. Rows: realm, id, position.
    static func notices(
        in realms: [Int32], before time: Timestamp, countMax: Int, of environment: EnvironmentID
    ) -> Statement {
        """
        SELECT o.realm_id, o.id, o.position
        FROM unnest(\(realms)) AS r(id) CROSS JOIN LATERAL (
            SELECT realm_id, id, position FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = \(Kind.notice) AND NOT deleted
                AND (fields::json->>'timestamp') COLLATE "C" < \(time.description)
            OFFSET 0
        ) o
        LIMIT \(Int64(countMax))
        """
    }
}
