import FoundationEssentials
import Model

/// The state that a decision about a person's location is based on.
struct PersonSnapshot: Equatable, Sendable {
    /// Whether the person has a valid location.
    var hasLocation = false
    /// Whether the `Person` object exists.
    var exists = false
    /// The teams of the person's memberships.
    var memberships: Set<UUID> = []
    /// The existing teams, including others.
    var teams: Set<UUID> = []
    /// The existing copies, and whether each equals the person's location.
    var copies: [RealmPath: Bool] = [:]
}

/// The realms with copies of a person's location: the managers' realm, and the realm of each existing team of the
/// person. Without a person or a location there are none.
enum LocationRule {
    /// A required change of one copy.
    enum Change: Equatable, Sendable {
        /// Writes the person's location, byte for byte.
        case put
        case delete
    }

    static func copyPaths(_ snapshot: PersonSnapshot) -> Set<RealmPath> {
        guard snapshot.exists, snapshot.hasLocation else { return [] }
        return Set([.manager] + snapshot.memberships.intersection(snapshot.teams).map { .team($0) })
    }

    /// Returns the changes that make the existing copies the expected ones; empty if they are equal.
    static func changes(_ snapshot: PersonSnapshot) -> [RealmPath: Change] {
        let paths = copyPaths(snapshot)
        var changes: [RealmPath: Change] = [:]
        for path in snapshot.copies.keys where !paths.contains(path) { changes[path] = .delete }
        for path in paths where snapshot.copies[path] != true { changes[path] = .put }
        return changes
    }
}
