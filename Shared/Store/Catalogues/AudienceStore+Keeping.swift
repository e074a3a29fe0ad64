import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// SQL statements of `CatalogueReconciler`.
extension AudienceStore {
    // MARK: Reading

    /// Selects the number of people with the same catalogue and tree. They are counted by PostgreSQL, so that the
    /// result grows with the audiences and not with the people. Rows: as decoded by `AudienceRule.Group`.
    static func groups(in environment: EnvironmentID) -> Statement {
        """
        SELECT catalogue, tree, count(*), max(read_at), min(changed_at), min(read_at) < 'epoch'
        FROM audience.person WHERE environment_id = \(environment.rawValue) GROUP BY catalogue, tree
        """
    }

    /// Selects the people of some shares, and possibly of others. Rows: e-mail, catalogue, tree.
    static func people(of shares: some Sequence<AudienceRule.Share>, in environment: EnvironmentID) -> Statement {
        """
        SELECT email, catalogue, tree FROM audience.person
        WHERE environment_id = \(environment.rawValue) AND tree = ANY (\(Array(Set(shares.map(\.tree)))))
            AND (catalogue = ANY (\(Array(Set(shares.compactMap(\.catalogue))))) OR catalogue IS NULL)
        ORDER BY email
        """
    }

    /// Rows: catalogue, tree.
    static func catalogues(in environment: EnvironmentID) -> Statement {
        "SELECT id, tree FROM audience.catalogue WHERE environment_id = \(environment.rawValue)"
    }

    /// Maximum number of nodes that are fetched by id from one tree. Each fetch decompresses the tree; for more nodes a
    /// scan of the tree is cheaper.
    private static let fetchedMax = 10

    /// Selects single nodes of trees. Rows: tree, id, fields.
    static func nodes(_ keys: [(tree: UUID, id: UUID)], in environment: EnvironmentID) -> [Statement] {
        let byTree = Dictionary(grouping: keys, by: \.tree)
        let few = byTree.values.filter { $0.count <= fetchedMax }.flatMap(\.self)
        let many = byTree.values.filter { $0.count > fetchedMax }.flatMap(\.self)
        let fetch: Statement = """
            SELECT w.digest, w.id, t.fields::text
            FROM unnest(\(few.map(\.tree)), \(few.map(\.id))) AS w(digest, id) CROSS JOIN LATERAL (
                SELECT nodes->(w.id::text) AS fields FROM audience.tree
                WHERE environment_id = \(environment.rawValue) AND digest = w.digest
                OFFSET 0
            ) t
            WHERE t.fields IS NOT NULL
            """
        let scan: Statement = """
            SELECT t.digest, w.id, e.value::text
            FROM audience.tree t CROSS JOIN LATERAL jsonb_each(t.nodes) e
            JOIN unnest(\(many.map(\.tree)), \(many.map(\.id))) AS w(digest, id)
                ON w.digest = t.digest AND w.id::text = e.key
            WHERE t.environment_id = \(environment.rawValue) AND t.digest = ANY (\(Array(Set(many.map(\.tree)))))
            """
        return (few.isEmpty ? [] : [fetch]) + (many.isEmpty ? [] : [scan])
    }

    // MARK: Guards

    /// Makes a decision conflict.
    static func miss(_ decision: Int) -> Statement { "SELECT realm.miss(ARRAY[\(Int32(decision))])" }

    /// Makes decisions conditional on the people's current tree and catalogue.
    static func expect(
        _ people: [(email: String, share: AudienceRule.Share, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        var catalogues = BinaryArray(of: UUID.self)
        for person in people { catalogues.append(person.share.catalogue) }
        return """
            SELECT realm.miss(array_agg(DISTINCT g.decision))
            FROM unnest(\(people.map(\.email)), \(people.map(\.share.tree)), \(catalogues),
                \(people.map { Int32($0.decision) })) AS g(email, tree, catalogue, decision)
            LEFT JOIN LATERAL (
                SELECT p.tree, p.catalogue FROM audience.person p
                WHERE p.environment_id = \(environment.rawValue) AND p.email = g.email
                OFFSET 0
            ) p ON true
            WHERE p.tree IS DISTINCT FROM g.tree OR p.catalogue IS DISTINCT FROM g.catalogue
            """
    }

    /// Makes decisions that change a catalogue conditional on the absence of other people with another tree in it.
    static func expectNoOthers(
        in catalogues: [(id: UUID, tree: UUID, decision: Int)], except leaving: [String],
        _ environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(catalogues.map(\.id)), \(catalogues.map(\.tree)), \(catalogues.map { Int32($0.decision) }))
            AS g(id, tree, decision)
        CROSS JOIN LATERAL (
            SELECT p.email FROM audience.person p
            WHERE p.environment_id = \(environment.rawValue) AND p.catalogue = g.id AND p.tree <> g.tree
            OFFSET 0
        ) p
        WHERE NOT EXISTS (SELECT FROM unnest(\(leaving)) AS l(email) WHERE l.email = p.email)
        """
    }

    /// Makes a decision that deletes a catalogue conditional on its having no people.
    static func expectEmpty(_ catalogue: UUID, decision: Int, _ environment: EnvironmentID) -> Statement {
        """
        SELECT realm.miss(\([Int32(decision)]))
        WHERE EXISTS (SELECT FROM audience.person
            WHERE environment_id = \(environment.rawValue) AND catalogue = \(catalogue))
        """
    }

    // MARK: Writing

    static func assign(
        _ people: [(email: String, catalogue: UUID, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        UPDATE audience.person p SET catalogue = i.catalogue
        FROM (
            SELECT p.ctid AS tuple, i.catalogue
            FROM unnest(\(people.map(\.email)), \(people.map(\.catalogue)), \(people.map { Int32($0.decision) }))
                AS i(email, catalogue, decision)
            CROSS JOIN LATERAL (
                SELECT p.ctid FROM audience.person p
                WHERE p.environment_id = \(environment.rawValue) AND p.email = i.email
                OFFSET 0
            ) p
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ) i
        WHERE p.ctid = i.tuple
        """
    }

    static func delete(_ catalogue: UUID, decision: Int, in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM audience.catalogue
        WHERE environment_id = \(environment.rawValue) AND id = \(catalogue)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Deletes trees without a person or catalogue.
    static func deleteUnusedTrees(in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM audience.tree t USING (
            SELECT digest FROM audience.tree WHERE environment_id = \(environment.rawValue)
            EXCEPT SELECT tree FROM audience.person WHERE environment_id = \(environment.rawValue)
            EXCEPT SELECT tree FROM audience.catalogue WHERE environment_id = \(environment.rawValue)
        ) AS old
        WHERE t.environment_id = \(environment.rawValue) AND t.digest = old.digest
        """
    }
}
