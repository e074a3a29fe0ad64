import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// What `CatalogueReconciler` reads and changes.
extension AudienceStore {
    // MARK: Reading

    /// How many have the same catalogue and may report on the same: counted where the rows are, so that what is read
    /// and decided grows with the audiences and not with the people. Rows: as `AudienceRule.Group` reads them.
    static func groups(in environment: EnvironmentID) -> Statement {
        """
        SELECT catalogue, tree, count(*), max(read_at), min(changed_at), min(read_at) < 'epoch'
        FROM audience.person WHERE environment_id = \(environment.rawValue) GROUP BY catalogue, tree
        """
    }

    /// The people of these shares, and perhaps of others. Rows: e-mail, catalogue, tree.
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

    /// Nodes that are fetched by their ids from one tree. Each fetch unpacks the tree; of more nodes, looking through
    /// all that is in it costs less.
    private static let fetchedMax = 10

    /// Single nodes of trees. Rows: tree, id, fields.
    static func nodes(_ places: [(tree: UUID, id: UUID)], in environment: EnvironmentID) -> [Statement] {
        let byTree = Dictionary(grouping: places, by: \.tree)
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
        let lookThrough: Statement = """
            SELECT t.digest, w.id, e.value::text
            FROM audience.tree t CROSS JOIN LATERAL jsonb_each(t.nodes) e
            JOIN unnest(\(many.map(\.tree)), \(many.map(\.id))) AS w(digest, id)
                ON w.digest = t.digest AND w.id::text = e.key
            WHERE t.environment_id = \(environment.rawValue) AND t.digest = ANY (\(Array(Set(many.map(\.tree)))))
            """
        return (few.isEmpty ? [] : [fetch]) + (many.isEmpty ? [] : [lookThrough])
    }

    // MARK: Guards

    /// The decision misses.
    static func miss(_ decision: Int) -> Statement { "SELECT realm.miss(ARRAY[\(Int32(decision))])" }

    /// Decisions about people who may report on something else by now, or have another catalogue, miss.
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

    /// Decisions that change a catalogue miss when somebody stays in it who may report on something else.
    static func expectNobodyElse(
        in catalogues: [(id: UUID, tree: UUID, decision: Int)], but leaving: [String],
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

    /// A decision that gives a catalogue up misses when somebody has it.
    static func expectNobody(in catalogue: UUID, decision: Int, _ environment: EnvironmentID) -> Statement {
        """
        SELECT realm.miss(\([Int32(decision)]))
        WHERE EXISTS (SELECT FROM audience.person
            WHERE environment_id = \(environment.rawValue) AND catalogue = \(catalogue))
        """
    }

    // MARK: Writing

    static func place(
        _ people: [(email: String, catalogue: UUID, decision: Int)], in environment: EnvironmentID
    ) -> Statement {
        """
        UPDATE audience.person p SET catalogue = i.catalogue
        FROM (
            SELECT p.ctid AS place, i.catalogue
            FROM unnest(\(people.map(\.email)), \(people.map(\.catalogue)), \(people.map { Int32($0.decision) }))
                AS i(email, catalogue, decision)
            CROSS JOIN LATERAL (
                SELECT p.ctid FROM audience.person p
                WHERE p.environment_id = \(environment.rawValue) AND p.email = i.email
                OFFSET 0
            ) p
            WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ) i
        WHERE p.ctid = i.place
        """
    }

    static func giveUp(_ catalogue: UUID, decision: Int, in environment: EnvironmentID) -> Statement {
        """
        DELETE FROM audience.catalogue
        WHERE environment_id = \(environment.rawValue) AND id = \(catalogue)
            AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Forgets the trees that nobody has any more.
    static func forgetTrees(in environment: EnvironmentID) -> Statement {
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
