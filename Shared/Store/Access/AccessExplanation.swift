import FoundationEssentials
package import Model

/// Whether somebody may open a realm, and by which rule.
package struct AccessExplanation: Equatable, Sendable {
    package let isOpen: Bool
    /// One clause for people, such as "a member of the team".
    package let reason: String
}

extension AccessState {
    /// What opens a realm to the caller, or keeps it closed: ``mayRead(_:)`` in words.
    package func explanation(of realm: RealmPath) -> AccessExplanation {
        AccessExplanation(isOpen: mayRead(realm), reason: reason(of: realm))
    }

    private func reason(of realm: RealmPath) -> String {
        guard caller.object != nil else {
            if isRemoved { return "the integration was removed" }
            return mayRead(realm) ? "an integration, which opens all but the services' own" : "it is the services' own"
        }
        return switch (realm.realmClass, access(to: realm).relation) {
        case (.system, _): "it is the services' own, which no device opens"
        case (.users, _): "it is read by integrations only"
        case (.user, .owner): "it is their own"
        case (.user, _): "it is another person's own"
        case (.catalogue, .referrer): "their User object refers to it"
        case (.catalogue, _):
            "their User object refers to " + (catalogue.map { "\(RealmPath.catalogue($0))" } ?? "no catalogue")
        case (.common, _): "it is everybody's"
        case (.manager, _), (.archive, _):
            role.isManager ? "they are \(role.words)" : "they are \(role.words), and it is for managers and admins"
        case (.team(let id), let relation): reason(ofTeam: id, isMember: relation == .member)
        case (.share, .owner): "they share what is in it"
        case (.share, .recipient): "what is in it is shared with them"
        case (.share(let id), _): shares[id] == nil ? "there is no such share" : "it is between others"
        }
    }

    private func reason(ofTeam id: UUID, isMember: Bool) -> String {
        if isMember { return "they are a member of the team" }
        if missingTeams.contains(id) { return "there is no such team" }
        return role.isManager
            ? "they are \(role.words), who may open every team's by naming it"
            : "they are \(role.words), and no member of the team"
    }
}

extension Role {
    /// For a sentence.
    fileprivate var words: String {
        switch self {
        case .admin: "an admin"
        case .manager: "a manager"
        case .worker: "a worker"
        }
    }
}
