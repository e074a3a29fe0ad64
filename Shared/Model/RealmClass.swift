import Essentials
public import FoundationEssentials

/// The purpose of a realm, on which its permissions depend.
public enum RealmClass: Equatable, Sendable {
    /// `/users`: the `Realms` objects.
    case users
    /// `/users/{id}`: one person's own objects.
    case user
    /// `/catalogues/{id}`: reporting trees.
    case catalogue(UUID)
    /// `/common`: people, teams and memberships.
    case common
    /// `/manager`: master tasks.
    case manager
    /// `/archive`: master tasks that were completed long ago.
    case archive
    /// `/teams/{id}`: the tasks of a team.
    case team(UUID)
    /// `/shares/{id}`: the items that one person shares with another.
    case share(UUID)
    /// Any other path: a realm of the services, which devices and integrations cannot open.
    case system

    /// A class without the id in its path.
    package enum Name: Int, CaseIterable, Sendable {
        /// The classes, as in ``RealmClass``.
        case users, user, catalogue, common, manager, archive, team, share, system

        /// The pattern of the realms' paths for display; for ``system``, whose paths have no common pattern, the owner.
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

    /// The class without its id.
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
    /// The realm's class. A path that is not in its normal form is a system realm's, which no client can open.
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
