import Access
import Model

extension AccessState {
    /// Returns whether a change of this object may affect the caller's permissions.
    func isAffected(by change: LiveChunk.PermissionChange, in realm: Int32, own: Int32) -> Bool {
        guard let object = caller.object else { return false }
        switch change.source {
        case .user: return realm == own
        case .person: return change.id == object
        case .membership: return Membership.ids(of: object).contains(change.id)
        // Only a team's existence counts, not its name.
        case .team:
            let hadTeam = teams[change.id] != nil || namedTeams[change.id] != nil
            return hadTeam ? !change.exists : missingTeams.contains(change.id)
        case .share: return true
        }
    }
}
