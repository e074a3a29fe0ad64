import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of links and shares: ranges of objects, since ids that are made of two begin with one of them.
struct SharingStatements {
    let environment: EnvironmentID
    let bounds: ShareBounds

    /// The oldest links of items, in the order of the items: as many of each as may have copies, and `countMax` of all.
    /// Rows: the item's number from 1 on, then as ``RealmObject`` reads them.
    func links(ofItems items: [(realm: Int32, id: UUID)], countMax: Int) -> Statement {
        let ranges = items.map { SharedItem.ids(of: $0.id) }
        return """
            SELECT i.n::int, l.realm_id, l.kind, l.id, l.position, l.edit_position, l.fields
            FROM unnest(\(items.map(\.realm)), \(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound)))
                WITH ORDINALITY AS i(realm_id, first, last, n)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = i.realm_id
                    AND o.kind = \(Kind.sharedItem) AND o.id BETWEEN i.first AND i.last AND NOT o.deleted
                ORDER BY o.edit_position, o.id LIMIT \(Int64(bounds.linkCountMax))
            ) l
            ORDER BY i.n LIMIT \(Int64(countMax))
            """
    }

    /// Links, and how many older ones their items have, counted up to the bound. Rows: that number, then as
    /// ``RealmObject`` reads them.
    func links(_ keys: [ObjectKey]) -> Statement {
        let ranges = keys.map { SharedItem.ids(of: $0.id) }
        return """
            SELECT c.n::int, l.realm_id, l.kind, l.id, l.position, l.edit_position, l.fields
            FROM unnest(\(keys.map(\.realm)), \(keys.map(\.id)), \(ranges.map(\.lowerBound)),
                \(ranges.map(\.upperBound))) AS k(realm_id, id, first, last)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = k.realm_id
                    AND o.kind = \(Kind.sharedItem) AND o.id = k.id
                OFFSET 0
            ) l
            CROSS JOIN LATERAL (
                SELECT count(*) AS n FROM (
                    SELECT FROM store.object o
                    WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = k.realm_id
                        AND o.kind = \(Kind.sharedItem) AND o.id BETWEEN k.first AND k.last AND NOT o.deleted
                        AND NOT l.deleted AND (o.edit_position, o.id) < (l.edit_position, l.id)
                    LIMIT \(Int64(bounds.linkCountMax))
                ) older
            ) c
            """
    }

    /// The next links that are older than the last end of their share, `countMax` of each share. Rows: the share's
    /// number from 1 on, then as ``RealmObject`` reads them.
    ///
    /// The recipient is the end of both ids. All links of the owner are looked at: an end is rare.
    func links(ofEnded shares: [(owner: Int32, key: ObjectKey)], countMax: Int) -> Statement {
        """
        SELECT e.n::int, l.realm_id, l.kind, l.id, l.position, l.edit_position, l.fields
        FROM unnest(\(shares.map(\.owner)), \(shares.map(\.key.realm)), \(shares.map(\.key.id)))
            WITH ORDINALITY AS e(owner_realm, share_realm, share_id, n)
        CROSS JOIN LATERAL (
            SELECT edit_position FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = e.share_realm AND kind = \(Kind.share)
                AND id = e.share_id AND edit_position > 0
            OFFSET 0
        ) s
        CROSS JOIN LATERAL (
            SELECT * FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = e.owner_realm
                AND o.kind = \(Kind.sharedItem) AND NOT o.deleted AND o.edit_position < s.edit_position
                AND right(o.id::text, 17) = right(e.share_id::text, 17)
            ORDER BY o.id LIMIT \(Int64(countMax))
        ) l
        """
    }

    /// The copies that are in shares' realms under ids that links may name. Rows: the link's number from 1 on, then as
    /// ``RealmObject`` reads them.
    func copies(_ links: [(realm: Int32, id: UUID)]) -> Statement {
        let ranges = links.map { SharedItem.ids(of: $0.id) }
        return """
            SELECT i.n::int, c.realm_id, c.kind, c.id, c.position, c.edit_position, c.fields
            FROM unnest(\(links.map(\.realm)), \(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound)))
                WITH ORDINALITY AS i(realm_id, first, last, n)
            CROSS JOIN unnest(\([Kind.appointment, .note])) AS k(kind)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = i.realm_id AND o.kind = k.kind
                    AND o.id BETWEEN i.first AND i.last AND NOT o.deleted
                OFFSET 0
            ) c
            """
    }

    /// How many shares people's own realms refer to, counted up to the bound. Rows: the realm, the number.
    func shareCounts(_ realms: [Int32]) -> Statement {
        "SELECT g.realm_id, c.n::int FROM unnest(\(realms)) AS g(realm_id) \(countOfShares)"
    }

    /// Misses decisions that make a share for people of whom somebody else has made one meanwhile.
    func expect(_ counts: [(realm: Int32, count: Int, decision: Int)]) -> Statement {
        """
        SELECT realm.miss(array_agg(DISTINCT g.decision))
        FROM unnest(\(counts.map(\.realm)), \(counts.map { Int32($0.count) }), \(counts.map { Int32($0.decision) }))
            AS g(realm_id, count, decision)
        \(countOfShares)
        WHERE c.n > g.count
        """
    }

    /// Joins `c.n` to each `g.realm_id`.
    private var countOfShares: Statement {
        """
        CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM (
                SELECT FROM store.object
                WHERE environment_id = \(environment.rawValue) AND realm_id = g.realm_id AND kind = \(Kind.share)
                    AND NOT deleted
                LIMIT \(Int64(bounds.shareCountMax))
            ) s
        ) c
        """
    }
}
