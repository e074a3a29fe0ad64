import FoundationEssentials
import Model

/// What a decision about a person's position is made from.
struct PersonPicture: Equatable, Sendable {
    /// Whether the person tells a position, and one that can be read.
    var isTold = false
    /// Whether the `Person` object is there.
    var isThere = false
    /// The teams that the person's memberships name.
    var memberships: Set<UUID> = []
    /// The teams that are there, others' too.
    var teams: Set<UUID> = []
    /// The copies that are there, and of each whether it says what the person tells.
    var copies: [RealmPath: Bool] = [:]
}

/// Where copies of a person's position are to be: with the managers, and in each team that is there and that the person
/// is in. Without a person, or without a position, nowhere: who stops telling it is seen by nobody any more.
enum LocationRule {
    /// What is to be done with one copy.
    enum Change: Equatable, Sendable {
        /// It is to say what the person tells, byte for byte.
        case put
        case delete
    }

    static func places(_ picture: PersonPicture) -> Set<RealmPath> {
        guard picture.isThere, picture.isTold else { return [] }
        return Set([.manager] + picture.memberships.intersection(picture.teams).map { .team($0) })
    }

    /// What makes of the copies that are there those that are to be; nothing when they are.
    static func changes(_ picture: PersonPicture) -> [RealmPath: Change] {
        let places = places(picture)
        var changes: [RealmPath: Change] = [:]
        for place in picture.copies.keys where !places.contains(place) { changes[place] = .delete }
        for place in places where picture.copies[place] != true { changes[place] = .put }
        return changes
    }
}
