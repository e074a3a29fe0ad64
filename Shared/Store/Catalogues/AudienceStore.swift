package import Essentials
package import FoundationEssentials
package import Model
package import Postgres

/// The SQL of the schema `audience`: what each person may report on, and which catalogue holds it.
///
/// A tree is named by its digest. Whoever writes a person's tree sees to it, in the same transaction, that the tree is
/// stored; whoever lets a person into a catalogue, that what is in it is the person's.
package enum AudienceStore {
    /// What a person may report on, as it was read.
    package struct Reading {
        package let email: String
        package let tree: UUID
        /// When it was asked for.
        package let readAt: Timestamp
        /// The person's catalogue from now on; `nil`: as it is.
        package let catalogue: UUID?
        /// Whether the person has no catalogue any more, whatever was stored.
        package let isUnplaced: Bool
        package let decision: Int

        package init(
            email: String, tree: UUID, readAt: Timestamp, catalogue: UUID? = nil, isUnplaced: Bool = false,
            decision: Int
        ) {
            self.email = email
            self.tree = tree
            self.readAt = readAt
            self.catalogue = catalogue
            self.isUnplaced = isUnplaced
            self.decision = decision
        }
    }

    /// Which of these trees are stored. Rows: digest.
    package static func stored(_ trees: [UUID], in environment: EnvironmentID) -> Statement {
        "SELECT digest FROM audience.tree WHERE environment_id = \(environment.rawValue) AND digest = ANY (\(trees))"
    }

    /// Stores a tree that is not stored.
    ///
    /// - Parameter nodes: Those it is made of.
    package static func store(
        _ tree: NodeTree, nodes: [Identified<ReportingTreeNode>], in environment: EnvironmentID
    ) throws -> Statement {
        """
        INSERT INTO audience.tree (environment_id, digest, digests, nodes)
        VALUES (\(environment.rawValue), \(tree.digest), \(Bytea(tree.digests.bytes)), \(try NodeTree.json(of: nodes)))
        ON CONFLICT DO NOTHING
        """
    }

    /// The decisions that count on a stored tree miss when it is gone by now.
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

    /// Remembers what was read.
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
                catalogue = CASE WHEN p.email = ANY (\(readings.filter(\.isUnplaced).map(\.email))) THEN NULL
                    ELSE coalesce(excluded.catalogue, p.catalogue) END
            """
    }

    /// The tree that was last read of a person. Rows: digest.
    package static func tree(of person: String, in environment: EnvironmentID) -> Statement {
        """
        SELECT tree FROM audience.person WHERE environment_id = \(environment.rawValue) AND email = \(person)
        """
    }

    /// The catalogues that hold these trees. Rows: tree, catalogue.
    package static func catalogues(of trees: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT tree, id FROM audience.catalogue
        WHERE environment_id = \(environment.rawValue) AND tree = ANY (\(trees)) ORDER BY id
        """
    }

    /// What catalogues hold. Rows: catalogue, tree.
    package static func trees(of catalogues: [UUID], in environment: EnvironmentID) -> Statement {
        """
        SELECT id, tree FROM audience.catalogue
        WHERE environment_id = \(environment.rawValue) AND id = ANY (\(catalogues))
        """
    }

    /// What trees are made of. Rows: digest, digests of the nodes.
    package static func trees(_ digests: some Sequence<UUID>, in environment: EnvironmentID) -> Statement {
        """
        SELECT digest, digests FROM audience.tree
        WHERE environment_id = \(environment.rawValue) AND digest = ANY (\(Array(digests)))
        """
    }

    /// All nodes of a tree. Rows: id, fields.
    package static func nodes(of tree: UUID, in environment: EnvironmentID) -> Statement {
        """
        SELECT e.key::uuid, e.value::text FROM audience.tree t, jsonb_each(t.nodes) e
        WHERE t.environment_id = \(environment.rawValue) AND t.digest = \(tree)
        """
    }

    /// The decisions that count on what a catalogue holds miss when it holds something else.
    ///
    /// - Parameter isThere: Whether one that is not there will not do either.
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

    /// Says what catalogues hold from now on.
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
}
