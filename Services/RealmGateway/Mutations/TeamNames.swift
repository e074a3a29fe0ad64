import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The unique names of teams, including the decisions of a batch so far.
struct TeamNames: Sendable {
    /// The normalised names of teams.
    private var keys: [UUID: String] = [:]
    private var teams: [String: Set<UUID>] = [:]

    /// - Parameter rows: The rows of ``load(_:in:)``.
    init(_ rows: Rows) throws(PostgresError) {
        for (team, fields) in try rows.decode(UUID.self, CanonicalJSON.self) { set(Self.name(fields.bytes), of: team) }
    }

    /// Returns the name in a team's fields.
    static func name(_ fields: [UInt8]) -> String? { (try? JSONObject(fields))?.text(of: "name") }

    /// Sets a team's name; `nil` if the team does not exist or has no name.
    ///
    /// - Returns: Whether the name is new.
    @discardableResult
    mutating func set(_ name: String?, of team: UUID) -> Bool {
        let old = keys.removeValue(forKey: team)
        if let old { teams[old]?.remove(team) }
        guard let name else { return false }
        let key = DisplayName.key(name)
        keys[team] = key
        teams[key, default: []].insert(team)
        return key != old
    }

    /// Returns the reason why a team may not have this name; `nil` if it may. A team may keep its name, even if an
    /// import gave another team the same one.
    func objection(to name: String, of team: UUID) -> MutationProblem? {
        let key = DisplayName.key(name)
        guard keys[team] != key, teams[key]?.isEmpty == false else { return nil }
        return MutationProblem(
            .nameTaken, "'name' must be unique: another team is called '\(name.excerpt)', ignoring case and spacing"
        )
    }

    /// Loads the ids and fields of all teams. ``DisplayName`` compares their names, because case folding in PostgreSQL
    /// depends on the database's locale.
    static func load(_ common: Int32, in environment: EnvironmentID) -> Statement {
        """
        SELECT id, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(common) AND kind = \(Kind.team) AND NOT deleted
        """
    }

    /// Reports a conflict for the decisions that named a team, if any team was written since the names were loaded.
    ///
    /// - Parameter position: The environment's position when they were loaded.
    static func conflictIfChanged(
        since position: Int64, _ decisions: [Int32], common: Int32, in environment: EnvironmentID
    ) -> Statement {
        """
        SELECT realm.miss(\(decisions)) WHERE EXISTS (
            SELECT FROM store.change
            WHERE environment_id = \(environment.rawValue) AND position > \(position) AND realm_id = \(common)
                AND kind = \(Kind.team))
        """
    }
}

extension MutationRequest {
    /// Whether a mutation names a team.
    var namesTeams: Bool {
        writes.contains { write in
            write.realm == .common && write.mutation.kind == .team
                && write.mutation.fields.flatMap(TeamNames.name) != nil
        }
    }
}
