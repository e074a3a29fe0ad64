import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The SQL of links and shares. Ids made of two ids begin with one of them, so that ranges select their objects.
struct SharingStatements {
    let environment: EnvironmentID
    let limits: ShareLimits

    /// The oldest links of items, in the order of the items: at most `linkCountMax` of each, and `countMax` in total.
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
                ORDER BY o.edit_position, o.id LIMIT \(Int64(limits.linkCountMax))
            ) l
            ORDER BY i.n LIMIT \(Int64(countMax))
            """
    }

    /// Links, and the number of older links of their items, counted up to the limit. Rows: that number, then as
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
                    LIMIT \(Int64(limits.linkCountMax))
                ) older
            ) c
            """
    }

    /// `DeletedObject`s of links that ended because their item was deleted, in the order of the items: at most
    /// `itemCountMax` of each, and `countMax` in total. Rows: the item's number from 1 on, then as ``RealmObject``
    /// reads them.
    func endedLinks(ofItems items: [(realm: Int32, id: UUID)], itemCountMax: Int, countMax: Int) -> Statement {
        let ranges = items.map { SharedItem.ids(of: $0.id) }
        return """
            SELECT i.n::int, d.realm_id, d.kind, d.id, d.position, d.edit_position, d.fields
            FROM unnest(\(items.map(\.realm)), \(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound)))
                WITH ORDINALITY AS i(realm_id, first, last, n)
            CROSS JOIN LATERAL (
                SELECT * FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = i.realm_id
                    AND o.kind = \(Kind.deletedObject) AND o.id BETWEEN i.first AND i.last AND NOT o.deleted
                    AND o.fields::json->>'reason' = \(EndReason.itemDeleted.rawValue)
                ORDER BY o.id LIMIT \(Int64(itemCountMax))
            ) d
            ORDER BY i.n LIMIT \(Int64(countMax))
            """
    }

    /// Links that are older than the last end of their share, at most `countMax` of each share. Rows: the share's
    /// number from 1 on, then as ``RealmObject`` reads them.
    ///
    /// Both ids end with the recipient's. All links of the owner are scanned: an end is rare.
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

    /// Copies in shares' realms under ids that links may name. Rows: the link's number from 1 on, then as
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

    /// The number of shares of people's own realms, counted up to the limit. Rows: the realm, the number.
    func shareCounts(_ realms: [Int32]) -> Statement {
        "SELECT g.realm_id, c.n::int FROM unnest(\(realms)) AS g(realm_id) \(countOfShares)"
    }

    /// Fails decisions that create a share for people whose number of shares has grown meanwhile.
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
                LIMIT \(Int64(limits.shareCountMax))
            ) s
        ) c
        """
    }
}
