package import Essentials
package import FoundationEssentials
package import Model
package import Postgres

/// SQL statements for the schema `audience`: the reporting tree of each person, and the catalogue that contains it.
///
/// A tree is identified by its digest. A transaction that writes a person's tree also stores the tree. A transaction
/// that assigns a catalogue to a person ensures that it contains the person's tree.
package enum AudienceStore {
    /// A person's tree as read from the back end.
    package struct Reading {
        package let email: String
        package let tree: UUID
        /// The time of the request.
        package let readAt: Timestamp
        /// The person's new catalogue; `nil` for no change.
        package let catalogue: UUID?
        /// Whether the person's assignment to a catalogue is removed, regardless of the stored one.
        package let removesCatalogue: Bool
        package let decision: Int

        package init(
            email: String, tree: UUID, readAt: Timestamp, catalogue: UUID? = nil, removesCatalogue: Bool = false,
            decision: Int
        ) {
            self.email = email
            self.tree = tree
            self.readAt = readAt
            self.catalogue = catalogue
            self.removesCatalogue = removesCatalogue
            self.decision = decision
        }
    }

    /// Selects those of some trees that are stored. Rows: digest.
    package static func stored(_ trees: [UUID], in environment: EnvironmentID) -> Statement {
        "SELECT digest FROM audience.tree WHERE environment_id = \(environment.rawValue) AND digest = ANY (\(trees))"
    }

    /// Stores a tree unless it is stored already.
    ///
    /// - Parameter nodes: The nodes of the tree.
    package static func store(
        _ tree: NodeTree, nodes: [Identified<ReportingTreeNode>], in environment: EnvironmentID
    ) throws -> Statement {
        """
        INSERT INTO audience.tree (environment_id, digest, digests, nodes)
        VALUES (\(environment.rawValue), \(tree.digest), \(Bytea(tree.digests.bytes)), \(try NodeTree.json(of: nodes)))
        ON CONFLICT DO NOTHING
        """
    }

    /// Makes decisions conditional on stored trees.
    package static func expectStored(
        _ trees: [(digest: UUID, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(trees.map(\.digest)), \(trees.map { Int32($0.decision) })) AS g(digest, decision)
        WHERE NOT EXISTS (SELECT FROM audience.tree t
            WHERE t.environment_id = \(environment.rawValue) AND t.digest = g.digest)
        """
    }

    /// Records the trees of people.
    package static func remember(_ readings: [Reading], in environment: EnvironmentID) -> Statement {
        var catalogues = BinaryArray(of: UUID.self)
        for reading in readings { catalogues.append(reading.catalogue) }
        return """
            INSERT INTO audience.person AS p (environment_id, email, tree, catalogue, read_at, changed_at)
            SELECT \(environment.rawValue), i.email, i.tree, i.catalogue, i.read_at, i.read_at
            FROM unnest(\(readings.map(\.email)), \(readings.map(\.tree)), \(catalogues), \(readings.map(\.readAt)),
                \(readings.map { Int32($0.decision) }))
                AS i(email, tree, catalogue, read_at, decision)
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[]) ORDER BY i.email
            ON CONFLICT (environment_id, email) DO UPDATE SET tree = excluded.tree, read_at = excluded.read_at,
                changed_at = CASE WHEN p.tree = excluded.tree THEN p.changed_at ELSE excluded.read_at END,
                catalogue = CASE WHEN p.email = ANY (\(readings.filter(\.removesCatalogue).map(\.email))) THEN NULL
                    ELSE coalesce(excluded.catalogue, p.catalogue) END
            """
    }

    /// Selects the last tree of a person. Rows: digest.
    package static func tree(of person: String, in environment: EnvironmentID) -> Statement {
        """
        SELECT tree FROM audience.person WHERE environment_id = \(environment.rawValue) AND email = \(person)
        """
    }

    /// Selects the catalogues with some trees. Rows: tree, catalogue.
    package static func catalogues(of trees: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT tree, id FROM audience.catalogue
        WHERE environment_id = \(environment.rawValue) AND tree = ANY (\(trees)) ORDER BY id
        """
    }

    /// Selects the trees of catalogues. Rows: catalogue, tree.
    package static func trees(of catalogues: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT id, tree FROM audience.catalogue
        WHERE environment_id = \(environment.rawValue) AND id = ANY (\(catalogues))
        """
    }

    /// Selects the digests of trees. Rows: digest, digests of the nodes.
    package static func trees(_ digests: some Sequence<UUID>, in environment: EnvironmentID) -> Statement {
        """
        SELECT digest, digests FROM audience.tree
        WHERE environment_id = \(environment.rawValue) AND digest = ANY (\(Array(digests)))
        """
    }

    /// Selects all nodes of a tree. Rows: id, fields.
    package static func nodes(of tree: UUID, in environment: EnvironmentID) -> Statement {
        """
        SELECT e.key::uuid, e.value::text FROM audience.tree t, jsonb_each(t.nodes) e
        WHERE t.environment_id = \(environment.rawValue) AND t.digest = \(tree)
        """
    }

    /// Makes decisions conditional on the trees of catalogues.
    ///
    /// - Parameter isThere: Whether a missing catalogue is a conflict too.
    package static func expect(
        _ catalogues: [(id: UUID, tree: UUID, decision: Int)], isThere: Bool, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(g.decision))
        FROM unnest(\(catalogues.map(\.id)), \(catalogues.map(\.tree)), \(catalogues.map { Int32($0.decision) }))
            AS g(id, tree, decision)
        LEFT JOIN LATERAL (
            SELECT c.tree FROM audience.catalogue c
            WHERE c.environment_id = \(environment.rawValue) AND c.id = g.id
            OFFSET 0
        ) c ON true
        WHERE CASE WHEN c.tree IS NULL THEN \(isThere) ELSE c.tree <> g.tree END
        """
    }

    /// Sets the trees of catalogues.
    package static func hold(
        _ catalogues: [(id: UUID, tree: UUID, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        INSERT INTO audience.catalogue AS c (environment_id, id, tree)
        SELECT \(environment.rawValue), i.id, i.tree
        FROM unnest(\(catalogues.map(\.id)), \(catalogues.map(\.tree)), \(catalogues.map { Int32($0.decision) }))
            AS i(id, tree, decision)
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[]) ORDER BY i.id
        ON CONFLICT (environment_id, id) DO UPDATE SET tree = excluded.tree WHERE c.tree <> excluded.tree
        """
    }

    // MARK: Repair
    //
    // The statements correct the stored assignment of catalogues. `CatalogueReconciler` then writes the correct nodes
    // after the next comparison with the back end.

    /// Returns the statements of one transaction that remove the assignment of people whose `User` object refers to
    /// another catalogue, or whose catalogue is unknown, if that is still the case.
    package static func unplace(_ emails: [String], in environment: EnvironmentID) -> [Statement] {
        [
            lock(environment),
            """
            UPDATE audience.person p SET catalogue = NULL
            WHERE p.environment_id = \(environment.rawValue) AND p.email = ANY (\(emails)) AND NOT EXISTS (
                SELECT FROM audience.catalogue c
                JOIN realm.realm r ON r.environment_id = c.environment_id AND r.path = '/users/' || p.email
                JOIN store.object o ON o.environment_id = c.environment_id AND o.realm_id = r.id
                    AND o.kind = \(Kind.user) AND NOT o.deleted
                WHERE c.environment_id = p.environment_id AND c.id = p.catalogue
                    AND lower(o.fields::json->>'catalogue') = c.id::text)
            """,
        ]
    }

    /// Returns the statements of one transaction that set the trees of catalogues to their actual nodes, each with an
    /// invalid hash, so that the next comparison rewrites them.
    package static func recount(_ catalogues: [UUID], in environment: EnvironmentID) -> [Statement] {
        [
            lock(environment),
            """
            WITH found AS MATERIALIZED (
                SELECT c.id, gen_random_uuid() AS digest, coalesce((
                        SELECT string_agg(uuid_send(o.id) || decode(repeat('00', 16), 'hex'), '' ORDER BY o.id)
                        FROM realm.realm r JOIN store.object o ON o.environment_id = r.environment_id
                            AND o.realm_id = r.id AND o.kind = \(Kind.reportingTreeNode) AND NOT o.deleted
                        WHERE r.environment_id = c.environment_id AND r.path = '/catalogues/' || c.id
                    ), '') AS digests
                FROM audience.catalogue c
                WHERE c.environment_id = \(environment.rawValue) AND c.id = ANY (\(catalogues))
            ), tree AS (
                INSERT INTO audience.tree (environment_id, digest, digests, nodes)
                SELECT \(environment.rawValue), digest, digests, '{}' FROM found
            )
            UPDATE audience.catalogue c SET tree = f.digest FROM found f
            WHERE c.environment_id = \(environment.rawValue) AND c.id = f.id
            """,
        ]
    }

    private static func lock(_ environment: EnvironmentID) -> Statement {
        "SELECT FROM realm.environment WHERE id = \(environment.rawValue) FOR UPDATE"
    }
}
