import FoundationEssentials
import Model
import ObjectStore

/// What is decided together: the people whose ids begin with the same eight bytes, which is all that a membership's id
/// says of its person. That is one, unless somebody chose ids on purpose.
struct LocationUnit {
    /// The inputs that are about these people: one decision, which all of them share.
    var inputs: [Int] = []
    /// The people, with their `Person` objects.
    var people: [UUID: Presence] = [:]
    /// Their memberships, with tombstones, by the memberships' ids. One that was compacted away is among them when an
    /// input is about it. Another one is not: its event has removed its team's copy before, unless nobody handled that
    /// until the tombstone was compacted.
    var memberships: [UUID: (position: Int64, stored: StoredMembership)] = [:]

    /// The ends of the ids of all teams that one of these people is in or was in.
    var teamEnds: Set<String> { Set(memberships.keys.map(Memberships.end)) }

    /// The teams that somebody is in.
    func teams(of person: UUID) -> Set<UUID> {
        Set(
            memberships.values.compactMap { membership in
                if case .of(person, let team) = membership.stored { team } else { nil }
            })
    }
}
