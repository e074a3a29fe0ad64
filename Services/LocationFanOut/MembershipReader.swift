import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// The decoded state of a membership.
enum MembershipState: Equatable, Sendable {
    case deleted
    case of(UUID, in: UUID)
    /// It is invalid for this reason, and puts no person into a team.
    case unreadable(String)
}

/// Decodes memberships and caches them: each is read whenever its person moves, and rarely changes.
struct MembershipReader {
    private struct Version: Hashable {
        let environment: EnvironmentID
        let id: UUID
        let position: Int64
    }

    private var cached: [Version: MembershipState] = [:]
    private let decoder = JSONDecoder()

    /// Limit on cached memberships. When it is reached, the cache is cleared.
    private static let countMax = 100_000

    mutating func read(_ object: RealmObject, in environment: EnvironmentID) -> MembershipState {
        if object.isDeleted { return .deleted }
        let version = Version(environment: environment, id: object.key.id, position: object.position)
        if let membership = cached[version] { return membership }
        if cached.count >= Self.countMax { cached.removeAll() }
        let membership = decode(object)
        cached[version] = membership
        return membership
    }

    private func decode(_ object: RealmObject) -> MembershipState {
        do {
            guard let membership = try object.decoded(as: Membership.self, by: decoder) else { return .deleted }
            // A tombstone has only the id: the copy of a membership with another id could not be removed.
            guard Membership.id(of: membership.person, in: membership.team) == object.key.id else {
                return .unreadable(
                    "Membership \(object.key.id.text) does not match its person and team; the expected id is "
                        + Membership.id(of: membership.person, in: membership.team).text)
            }
            return .of(membership.person, in: membership.team)
        } catch {
            return .unreadable(error.description)
        }
    }
}
