import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.mirror`, and of what is removed from people's realms.
enum MirrorStore {
    /// A mirror: the defect's id, and the number of the realm it is in.
    struct Place: Hashable {
        let defect: UUID
        let realm: Int32
    }

    /// Where defects are mirrored. Rows: defect, realm.
    static func places(of defects: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT m.defect_id, m.realm_id FROM unnest(\(defects)) AS i(defect_id) CROSS JOIN LATERAL (
            SELECT defect_id, realm_id FROM defect.mirror
            WHERE environment_id = \(environment.rawValue) AND defect_id = i.defect_id
            OFFSET 0
        ) m
        """
    }

    static func read(_ rows: Rows) throws(PostgresError) -> [UUID: Set<Int32>] {
        var places: [UUID: Set<Int32>] = [:]
        for (defect, realm) in try rows.decode(UUID.self, Int32.self) { places[defect, default: []].insert(realm) }
        return places
    }

    /// Mirrors of defects that are no more, but for those that were written after a position; also those that are in a
    /// person's realm and that ``hold(_:in:decision:)`` was never told of. Rows: defect, realm, the object's position
    /// (0: there is none), whether it is deleted.
    ///
    /// - Parameters:
    ///   - found: The defects that there are.
    ///   - realm: Only in this one; `nil`: in all.
    static func gone(
        but found: Set<UUID>, in realm: Int32?, through position: Int64, countMax: Int, of environment: EnvironmentID
    ) -> Statement {
        let there: Statement = realm.map { "AND realm_id = \($0)" } ?? ""
        let realms: Statement = realm.map { "AND r.id = \($0)" } ?? ""
        return """
            SELECT m.defect_id, m.realm_id, coalesce(o.position, 0), coalesce(o.deleted, true)
            FROM (
                SELECT defect_id, realm_id FROM defect.mirror WHERE environment_id = \(environment.rawValue) \(there)
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
                AND NOT EXISTS (SELECT FROM unnest(\(Array(found))) AS f(id) WHERE f.id = m.defect_id)
            LIMIT \(Int64(countMax))
            """
    }

    /// The mirrors of one realm, those first that were written last. Rows: record, owner where it is assigned to the
    /// realm's person, submitter where they reported it; null otherwise.
    static func mirrored(in realm: Int32, countMax: Int, of environment: EnvironmentID) -> Statement {
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

    static func hold(_ places: [Place], in environment: EnvironmentID, decision: Int) -> Statement {
        """
        INSERT INTO defect.mirror (environment_id, defect_id, realm_id)
        SELECT \(environment.rawValue), i.defect_id, i.realm_id
        FROM unnest(\(places.map(\.defect)), \(places.map(\.realm))) AS i(defect_id, realm_id)
        WHERE \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        ORDER BY 2, 3 ON CONFLICT DO NOTHING
        """
    }

    static func release(_ places: [Place], in environment: EnvironmentID, decision: Int) -> Statement {
        """
        DELETE FROM defect.mirror m
        USING unnest(\(places.map(\.defect)), \(places.map(\.realm))) AS i(defect_id, realm_id)
        WHERE m.environment_id = \(environment.rawValue) AND m.defect_id = i.defect_id AND m.realm_id = i.realm_id
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    // MARK: Notices

    /// The notices of some realms. Rows: realm, id, position, the time as it is stored.
    static func notices(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT o.realm_id, o.id, o.position, coalesce(o.fields::json->>'timestamp', '')
        FROM unnest(\(realms)) AS r(id) CROSS JOIN LATERAL (
            SELECT realm_id, id, position, fields FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = \(Kind.notice) AND NOT deleted
            OFFSET 0
        ) o
        """
    }

    /// Notices that are older than a moment: as text, times are in their order. Rows: realm, id, position.
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
