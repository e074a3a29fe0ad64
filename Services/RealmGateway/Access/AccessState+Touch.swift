import Access
import Model

extension AccessState {
    /// Whether a change of this object may change what the caller may open.
    func isTouched(by change: LiveChunk.Touch, in realm: Int32, own: Int32) -> Bool {
        guard let object = caller.object else { return false }
        switch change.source {
        case .user: return realm == own
        case .person: return change.id == object
        case .membership: return Membership.ids(of: object).contains(change.id)
        // Only whether a team is there counts; its name does not.
        case .team:
            let isKnown = teams[change.id] != nil || namedTeams[change.id] != nil
            return isKnown ? !change.isThere : missingTeams.contains(change.id)
        case .share: return true
        }
    }
}
