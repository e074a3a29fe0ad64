import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Which team has which name, as far as a batch of mutations has come: no two have one.
struct TeamNames: Sendable {
    /// What tells a team's name from others'.
    private var keys: [UUID: String] = [:]
    private var teams: [String: Set<UUID>] = [:]

    /// - Parameter rows: Those of ``load(_:in:)``.
    init(_ rows: Rows) throws(PostgresError) {
        for (team, fields) in try rows.decode(UUID.self, CanonicalJSON.self) { set(Self.name(fields.bytes), of: team) }
    }

    /// The name among a team's fields.
    static func name(_ fields: [UInt8]) -> String? { (try? JSONObject(fields))?.text(of: "name") }

    /// Notes a team's name from now on; `nil`: there is no such team, or it has none.
    ///
    /// - Returns: Whether the team is called by this name only from now on.
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

    /// Why a team may not have this name; `nil` when it may. What it is called already it may be called, also where an
    /// import gave another team the same name.
    func objection(to name: String, of team: UUID) -> MutationProblem? {
        let key = DisplayName.key(name)
        guard keys[team] != key, teams[key]?.isEmpty == false else { return nil }
        return MutationProblem(
            .nameTaken, "'name' must be another: there is a team '\(name.excerpt)' already, perhaps in other letters"
        )
    }

    /// The teams that there are, by id and fields. Their names are compared here, by ``DisplayName``, because how
    /// PostgreSQL folds letters depends on the database's locale.
    static func load(_ common: Int32, in environment: EnvironmentID) -> Statement {
        """
        SELECT id, fields FROM store.object
        WHERE environment_id = \(environment.rawValue) AND realm_id = \(common) AND kind = \(Kind.team) AND NOT deleted
        """
    }

    /// Misses the decisions that gave a team its name when any team was written since they were loaded.
    ///
    /// - Parameter position: The environment's, when they were.
    static func missChanged(
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
    /// Whether it gives a team a name.
    var namesTeams: Bool {
        mutations.contains { mutation in
            guard case .change(.common, let change) = mutation.intent, change.kind == .team else { return false }
            return change.fields.flatMap(TeamNames.name) != nil
        }
    }
}
