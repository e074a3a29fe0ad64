import FoundationEssentials
package import Model

/// Whether a caller may open a realm, and the rule that decides it.
package struct AccessExplanation: Equatable, Sendable {
    package let isOpen: Bool
    /// A clause for display, such as "they are a member of the team".
    package let reason: String
}

extension AccessState {
    /// Explains the result of ``mayRead(_:)``.
    package func explanation(of realm: RealmPath) -> AccessExplanation {
        AccessExplanation(isOpen: mayRead(realm), reason: reason(of: realm))
    }

    private func reason(of realm: RealmPath) -> String {
        guard caller.object != nil else {
            if isRemoved { return "the integration was removed" }
            return mayRead(realm) ? "an integration may open every realm except internal ones" : "the realm is internal"
        }
        return switch (realm.realmClass, access(to: realm).relation) {
        case (.system, _): "the realm is internal, devices cannot open it"
        case (.users, _): "only integrations may read it"
        case (.user, .owner): "it is their own realm"
        case (.user, _): "it is another person's realm"
        case (.catalogue, .referrer): "their User object refers to it"
        case (.catalogue, _):
            "their User object refers to " + (catalogue.map { "\(RealmPath.catalogue($0))" } ?? "no catalogue")
        case (.common, _): "all people may read it"
        case (.manager, _), (.archive, _):
            role.isManager ? "they are \(role.phrase)" : "they are \(role.phrase); only managers and admins may open it"
        case (.team(let id), let relation): reason(ofTeam: id, isMember: relation == .member)
        case (.share, .owner): "they share its content"
        case (.share, .recipient): "its content is shared with them"
        case (.share(let id), _): shares[id] == nil ? "the share does not exist" : "the share is between other people"
        }
    }

    private func reason(ofTeam id: UUID, isMember: Bool) -> String {
        if isMember { return "they are a member of the team" }
        if missingTeams.contains(id) { return "the team does not exist" }
        return role.isManager
            ? "they are \(role.phrase), who may open every team's realm by name"
            : "they are \(role.phrase), not a member of the team"
    }
}

extension Role {
    /// The role with its article.
    fileprivate var phrase: String {
        switch self {
        case .admin: "an admin"
        case .manager: "a manager"
        case .worker: "a worker"
        }
    }
}
