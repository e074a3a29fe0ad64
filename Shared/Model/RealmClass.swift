import Essentials
public import FoundationEssentials

/// What a realm is for, which decides on who may do what in it.
public enum RealmClass: Equatable, Sendable {
    /// `/users`: the `Realms` objects.
    case users
    /// `/users/{id}`: one person's own.
    case user
    /// `/catalogues/{id}`: reporting trees.
    case catalogue(UUID)
    /// `/common`: people, teams and memberships.
    case common
    /// `/manager`: master tasks.
    case manager
    /// `/archive`: master tasks that were completed long ago.
    case archive
    /// `/teams/{id}`: a team's tasks.
    case team(UUID)
    /// `/shares/{id}`: what one person shares with another.
    case share(UUID)
    /// Any other: the services' own, which no device and no integration opens.
    case system

    /// A class without the id in its path.
    package enum Name: Int, CaseIterable, Sendable {
        /// The classes as ``RealmClass`` tells them.
        case users, user, catalogue, common, manager, archive, team, share, system

        /// How the paths of its realms are written, for people; of ``system``, whose paths have nothing in common, who
        /// has them.
        package var pattern: String {
            switch self {
            case .users: "/users"
            case .user: "/users/{e-mail}"
            case .catalogue: "/catalogues/{id}"
            case .common: "/common"
            case .manager: "/manager"
            case .archive: "/archive"
            case .team: "/teams/{id}"
            case .share: "/shares/{id}"
            case .system: "services' own"
            }
        }
    }

    /// The class without the id in its path.
    package var name: Name {
        switch self {
        case .users: .users
        case .user: .user
        case .catalogue: .catalogue
        case .common: .common
        case .manager: .manager
        case .archive: .archive
        case .team: .team
        case .share: .share
        case .system: .system
        }
    }
}

extension RealmPath {
    /// What the realm is for. A path that is not written as Fieldpost writes it is a system realm's, and so nobody's.
    public var realmClass: RealmClass {
        switch self {
        case .users: return .users
        case .common: return .common
        case .manager: return .manager
        case .archive: return .archive
        default: break
        }
        if let email, email == EmailAddress.lowered(email) { return .user }
        let candidates: [(prefix: String, make: (UUID) -> RealmClass)] = [
            ("/catalogues/", RealmClass.catalogue), ("/teams/", RealmClass.team), ("/shares/", RealmClass.share),
        ]
        for (prefix, make) in candidates where description.hasPrefix(prefix) {
            let text = String(description.dropFirst(prefix.count))
            if let id = UUID(ascii: text), id.text == text { return make(id) }
        }
        return .system
    }
}
