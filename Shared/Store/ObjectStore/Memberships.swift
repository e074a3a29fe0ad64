import Essentials
package import FoundationEssentials
package import Model
package import Postgres

/// Queries of memberships by their ids.
package enum Memberships {
    /// Returns the last eight bytes of an id as text, the team's half of a membership's id.
    package static func end(of id: UUID) -> String { String(id.text.suffix(17)) }

    /// Finds the memberships of teams, with the number of the decision about the team. Rows: decision, the membership's
    /// id.
    ///
    /// It scans all memberships of the environment and therefore runs before the decision's transaction. That is
    /// correct: a person who joins later causes a separate event, which is processed with the team's state at that
    /// time.
    ///
    /// The ids identify the team and the person, so the fields need not be valid. If the relevant halves of two ids are
    /// equal, the result contains additional memberships.
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

    /// Finds the memberships of people, with the number of the decision about the person. Rows: as
    /// ``of(teams:common:in:)``.
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
