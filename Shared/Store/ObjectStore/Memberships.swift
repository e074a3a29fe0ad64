import Essentials
package import FoundationEssentials
package import Model
package import Postgres

/// The SQL that finds memberships by their ids.
package enum Memberships {
    /// The last eight bytes of an id as text: what a membership's id has of its team's.
    package static func end(of id: UUID) -> String { String(id.text.suffix(17)) }

    /// The memberships of teams, by the number of the decision about the team. Rows: decision, the membership's id.
    ///
    /// It looks at all memberships of the environment, and so runs before the decision's transaction, not in it. That
    /// is right: a person who joins it later has an event of their own, and it finds the team as it is now.
    ///
    /// Their ids say of which team they are, and whose: none of their fields has to be read, nor to be readable. Of
    /// teams, or people, whose ids share the half that a membership's has, one too many is found at worst.
    package static func of(
        teams: [(id: UUID, decision: Int)], common: Int32, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT i.decision, m.id
        FROM (
            SELECT o.id FROM store.object o
            WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(common)
                AND o.kind = \(Kind.membership) AND NOT o.deleted
            OFFSET 0
        ) m
        JOIN unnest(\(teams.map { end(of: $0.id) }), \(teams.map { Int32($0.decision) })) AS i(team, decision)
            ON right(m.id::text, 17) = i.team
        """
    }

    /// The memberships of people, by the number of the decision about the person. Rows: as ``of(teams:common:in:)``.
    package static func of(
        people: [(id: UUID, decision: Int)], common: Int32, in environment: EnvironmentID
    ) -> Statement {
        let ranges = people.map { Membership.ids(of: $0.id) }
        return """
            SELECT i.decision, m.id
            FROM unnest(\(ranges.map(\.lowerBound)), \(ranges.map(\.upperBound)),
                \(people.map { Int32($0.decision) })) AS i(low, high, decision)
            CROSS JOIN LATERAL (
                SELECT o.id FROM store.object o
                WHERE o.environment_id = \(environment.rawValue) AND o.realm_id = \(common)
                    AND o.kind = \(Kind.membership) AND o.id BETWEEN i.low AND i.high AND NOT o.deleted
                OFFSET 0
            ) m
            """
    }
}
