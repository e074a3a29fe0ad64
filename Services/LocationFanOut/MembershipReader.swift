import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A membership as it is stored.
enum StoredMembership: Equatable, Sendable {
    case deleted
    case of(UUID, in: UUID)
    /// What is wrong with it. Nobody is in a team by it.
    case unreadable(String)
}

/// Reads memberships, and remembers what they say: each is read whenever its person moves, and hardly ever changes.
struct MembershipReader {
    private struct Version: Hashable {
        let environment: EnvironmentID
        let id: UUID
        let position: Int64
    }

    private var known: [Version: StoredMembership] = [:]
    private let decoder = JSONDecoder()

    /// The memory is dropped when it holds more than this.
    private static let countMax = 100_000

    mutating func read(_ object: RealmObject, in environment: EnvironmentID) -> StoredMembership {
        if object.isDeleted { return .deleted }
        let version = Version(environment: environment, id: object.key.id, position: object.position)
        if let membership = known[version] { return membership }
        if known.count >= Self.countMax { known.removeAll() }
        let membership = decode(object)
        known[version] = membership
        return membership
    }

    private func decode(_ object: RealmObject) -> StoredMembership {
        do {
            guard let found = try object.decoded(as: Membership.self, by: decoder) else { return .deleted }
            // Its tombstone has the id only: one with another id would leave its copy behind.
            guard Membership.id(of: found.person, in: found.team) == object.key.id else {
                return .unreadable(
                    "Membership \(object.key.id.text) is not that of its person and team, which would be "
                        + Membership.id(of: found.person, in: found.team).text)
            }
            return .of(found.person, in: found.team)
        } catch {
            return .unreadable(error.description)
        }
    }
}
