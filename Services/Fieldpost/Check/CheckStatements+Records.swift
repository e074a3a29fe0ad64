import BackendConnections
import Model
import Postgres

/// Statements that compare derived records with the objects. Rows: as ``Inconsistency`` reads them.
extension CheckSlice {
    /// Each person's catalogue exists and has the nodes of its tree. One statement for all: there is one row per
    /// person.
    var catalogues: Statement {
        """
        SELECT f.key, f.fault, f.id, 0::bigint FROM (
            SELECT '/users/' || p.email AS key, 'its catalogue ' || p.catalogue || ' does not exist' AS fault,
                p.catalogue AS id
            FROM audience.person p LEFT JOIN audience.catalogue c
                ON c.environment_id = p.environment_id AND c.id = p.catalogue
            WHERE p.environment_id = \(environment.rawValue) AND \(has("p.catalogue")) AND c.id IS NULL
            UNION ALL
            SELECT '/users/' || p.email, 'its tree ' || p.tree || ' does not exist', p.tree
            FROM audience.person p LEFT JOIN audience.tree t
                ON t.environment_id = p.environment_id AND t.digest = p.tree
            WHERE p.environment_id = \(environment.rawValue) AND \(has("p.tree")) AND t.digest IS NULL
            UNION ALL
            SELECT '/users/' || p.email, 'no User object there refers to the catalogue ' || p.catalogue, p.catalogue
            FROM audience.person p
            WHERE p.environment_id = \(environment.rawValue) AND \(has("p.catalogue")) AND NOT EXISTS (
                SELECT FROM store.object o WHERE o.environment_id = p.environment_id
                    AND o.realm_id = \(realm("'/users/' || p.email")) AND o.kind = \(Kind.user) AND NOT o.deleted
                    AND \(Self.id("catalogue", of: "o.fields")) = p.catalogue)
            UNION ALL
            SELECT '/catalogues/' || c.id, CASE WHEN t.digest IS NULL THEN 'its tree ' || c.tree || ' does not exist'
                WHEN n.count <> octet_length(t.digests) / 32
                    THEN 'it has ' || n.count || ' nodes, but its tree has ' || octet_length(t.digests) / 32
                ELSE 'its recount is not yet compared with the back end' END, c.id
            FROM audience.catalogue c LEFT JOIN audience.tree t
                ON t.environment_id = c.environment_id AND t.digest = c.tree
            CROSS JOIN LATERAL (
                SELECT count(*) AS count FROM store.object WHERE environment_id = c.environment_id
                    AND realm_id = \(realm("'/catalogues/' || c.id")) AND kind = \(Kind.reportingTreeNode)
                    AND NOT deleted
            ) n
            WHERE c.environment_id = \(environment.rawValue) AND \(has("c.id"))
                AND (n.count IS DISTINCT FROM octet_length(t.digests) / 32
                    OR t.nodes = '{}' AND octet_length(t.digests) > 0)
        ) f LIMIT \(Int64(countMax))
        """
    }

    /// Each entry's status is that of the newest line of its log.
    var statuses: Statement {
        """
        SELECT r.path || '/TimeEntry/' || f.id, 'its status is ' || f.status || ', but its log has '
            || coalesce(f.logged, 'no line'), f.id, f.position
        FROM realm.realm r CROSS JOIN LATERAL (
            SELECT e.id, e.position, coalesce(e.fields::json->>'status', 'draft') AS status, n.status AS logged
            FROM store.object e LEFT JOIN (
                SELECT DISTINCT ON (i.entry) i.entry, i.fields::json->>'status' AS status FROM (
                    SELECT \(Self.id("entry", of: "o.fields")) AS entry, o.fields, o.position FROM store.object o
                    WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = r.id
                        AND o.kind = \(Kind.timeEntryStatus) AND NOT o.deleted
                    OFFSET 0
                ) i
                ORDER BY i.entry, (i.fields::json->>'timestamp')::timestamptz DESC, i.position DESC
            ) n ON n.entry = e.id
            WHERE e.environment_id = \(environment.rawValue) AND e.realm_id = r.id AND e.kind = \(Kind.timeEntry)
                AND NOT e.deleted AND n.status IS DISTINCT FROM coalesce(e.fields::json->>'status', 'draft')
        ) f
        WHERE r.environment_id = \(environment.rawValue) AND \(hasRealm("r.id")) AND starts_with(r.path, '/users/')
        LIMIT \(Int64(countMax))
        """
    }

    /// Each entry with an outcome is settled in the ledger, and no attempt exceeds its lease by more than
    /// `leaseOverSeconds`, unless its key is deferred. Without a back end an integration processes the entries, and
    /// there is no ledger.
    var submissions: Statement {
        """
        SELECT r.path || '/TimeEntry/' || f.id, f.fault, f.id, f.position FROM (
            SELECT o.realm_id, o.id, o.position,
                'its status is ' || s.status || ', but its attempt is ' || l.phase AS fault
            FROM realm.realm r \(objects(.timeEntry, in: "r.id"))
            CROSS JOIN LATERAL (SELECT o.fields::json->>'status' AS status) s
            JOIN submission.ledger l ON l.environment_id = o.environment_id AND l.entry_id = o.id
                AND l.realm_id = o.realm_id AND l.edit_position >= o.edit_position
            WHERE r.environment_id = \(environment.rawValue) AND starts_with(r.path, '/users/')
                AND s.status IN ('released', 'approved', 'recorded') AND l.phase <> 'settled' AND l.operation = 'create'
            UNION ALL
            SELECT o.realm_id, o.id, o.position, 'its status is ' || s.status || ', but the ledger has no row'
            FROM realm.realm r \(objects(.timeEntry, in: "r.id"))
            CROSS JOIN LATERAL (SELECT o.fields::json->>'status' AS status) s
            LEFT JOIN submission.ledger l ON l.environment_id = o.environment_id AND l.entry_id = o.id
            WHERE r.environment_id = \(environment.rawValue) AND starts_with(r.path, '/users/')
                AND s.status IN ('released', 'approved') AND o.fields::json->>'submitRequested' = 'true'
                AND l.entry_id IS NULL
                AND EXISTS (\(BackendConfiguration.revision(in: environment)))
            UNION ALL
            SELECT l.realm_id, l.entry_id, l.version, 'an attempt (' || l.phase || ') has exceeded its lease'
            FROM submission.ledger l
            WHERE l.environment_id = \(environment.rawValue) AND \(has("l.entry_id")) AND l.phase <> 'settled'
                AND l.lease_until < now() - make_interval(secs => \(Self.leaseOverSeconds))
                AND NOT EXISTS (
                    SELECT FROM pipeline.parked p JOIN realm.realm r
                        ON r.environment_id = p.environment_id AND r.id = l.realm_id
                    WHERE p.group_name = \(Services.entrySubmitter.name) AND p.environment_id = l.environment_id
                        AND p.key = r.path || '/TimeEntry/' || l.entry_id)
        ) f JOIN realm.realm r ON r.environment_id = \(environment.rawValue) AND r.id = f.realm_id
        LIMIT \(Int64(countMax))
        """
    }

    /// Running workers look up an attempt within seconds after its lease ends.
    private static let leaseOverSeconds = 600.0

    /// Each mirror of a defect has a row, so that it is updated with the defect.
    var defects: Statement {
        """
        SELECT r.path || '/Defect/' || f.id, f.fault, f.id, f.position FROM (
            SELECT o.realm_id, o.id, o.position, 'defect.mirror has no row of it' AS fault
            FROM realm.realm r \(objects(.defect, in: "r.id"))
            LEFT JOIN defect.mirror m ON m.environment_id = o.environment_id AND m.defect_id = o.id
                AND m.realm_id = o.realm_id
            WHERE r.environment_id = \(environment.rawValue) AND starts_with(r.path, '/users/')
                AND m.defect_id IS NULL
            UNION ALL
            SELECT m.realm_id, m.defect_id, 0, 'its mirror does not exist' FROM defect.mirror m
            WHERE m.environment_id = \(environment.rawValue) AND \(has("m.defect_id"))
                AND NOT \(exists(.defect, "m.defect_id", in: "m.realm_id"))
        ) f JOIN realm.realm r ON r.environment_id = \(environment.rawValue) AND r.id = f.realm_id
        LIMIT \(Int64(countMax))
        """
    }

    /// Each image that an object names has a reference, and each reference an object.
    var images: Statement {
        """
        SELECT r.path || '/' || k.name || '/' || f.id, f.fault, f.id, f.position FROM (
            SELECT o.realm_id, o.kind, o.id, o.position,
                'it names the image ' || n.blob_id || ', but blob.reference has no row of it' AS fault
            FROM realm.realm r \(objects(Self.imageKinds, in: "r.id"))
            CROSS JOIN LATERAL (SELECT blob.named(o.kind, o.fields) AS blob_id) n
            WHERE r.environment_id = \(environment.rawValue) AND n.blob_id IS NOT NULL AND NOT EXISTS (
                SELECT FROM blob.reference b WHERE b.environment_id = o.environment_id AND b.blob_id = n.blob_id
                    AND b.realm_id = o.realm_id AND b.kind = o.kind AND b.id = o.id)
            UNION ALL
            SELECT o.realm_id, o.kind, o.id, o.position,
                'it names the image ' || n.blob_id || ', but blob.reference has no row of it'
            FROM realm.own_kind w JOIN realm.realm r USING (environment_id) CROSS JOIN LATERAL (
                SELECT * FROM store.object WHERE environment_id = w.environment_id AND realm_id = r.id
                    AND kind = w.kind AND \(has("id")) AND NOT deleted
                OFFSET 0
            ) o CROSS JOIN LATERAL unnest(blob.named_at(w.image_paths, o.fields)) AS n(blob_id)
            WHERE w.environment_id = \(environment.rawValue) AND w.image_paths <> '{}' AND NOT EXISTS (
                SELECT FROM blob.reference b WHERE b.environment_id = o.environment_id AND b.blob_id = n.blob_id
                    AND b.realm_id = o.realm_id AND b.kind = o.kind AND b.id = o.id)
            UNION ALL
            SELECT b.realm_id, b.kind, b.id, 0,
                'blob.reference has the image ' || b.blob_id || ', which it does not name'
            FROM blob.reference b
            WHERE b.environment_id = \(environment.rawValue) AND \(has("b.blob_id")) AND NOT EXISTS (
                SELECT FROM store.object o WHERE o.environment_id = b.environment_id AND o.realm_id = b.realm_id
                    AND o.kind = b.kind AND o.id = b.id AND CASE WHEN b.kind < \(OwnKind.numbers.lowerBound)
                        THEN blob.named(o.kind, o.fields) = b.blob_id
                        ELSE b.blob_id = ANY (blob.named_at((
                            SELECT image_paths FROM realm.own_kind w
                            WHERE w.environment_id = b.environment_id AND w.kind = b.kind), o.fields)) END)
        ) f JOIN realm.realm r ON r.environment_id = \(environment.rawValue) AND r.id = f.realm_id
        JOIN realm.kind k ON k.number = f.kind
        LIMIT \(Int64(countMax))
        """
    }

    /// Kinds that name images: those of the triggers of `035-task-notes.sql`.
    static let imageKinds: [Kind] = [.fieldTask, .person, .team, .taskNote]
}
