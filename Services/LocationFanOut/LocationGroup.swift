import FoundationEssentials
import Model
import ObjectStore

/// People who are processed together: those whose ids begin with the same eight bytes, because a membership's id has
/// only these of its person. Usually this is one person.
struct LocationGroup {
    /// The inputs about these people, which share one decision.
    var inputs: [Int] = []
    /// The people with their `Person` objects.
    var people: [UUID: Presence] = [:]
    /// Their memberships, including tombstones, by the memberships' ids. A compacted tombstone is included if an input
    /// is about it. Any other is not: its event has already removed its team's copy, unless the event was not processed
    /// before the compaction.
    var memberships: [UUID: (position: Int64, stored: MembershipState)] = [:]

    /// The ends of the ids of all teams that one of these people is or was in.
    var teamEnds: Set<String> { Set(memberships.keys.map(Memberships.end)) }

    /// Returns the teams of a person.
    func teams(of person: UUID) -> Set<UUID> {
        Set(
            memberships.values.compactMap { membership in
                if case .of(person, let team) = membership.stored { team } else { nil }
            })
    }
}
