/// A group's members as they were seen, to tell when they change.
struct Assembly: Sendable {
    private var members: Set<String>?
    private var isRebalancing = false
    private(set) var rebalanceCount = 0
    /// Whether somebody was there at one of the looks.
    private(set) var hasHadMembers = false

    /// Every change of its members makes a group share its partitions out anew. Between two looks there may be several:
    /// they count as one.
    mutating func take(_ group: LagLook.Group) {
        if let count = group.memberCount, count > 0 { hasHadMembers = true }
        guard let ids = group.memberIDs else { return }
        let hasBegun = group.isRebalancing && !isRebalancing
        // One that was seen to begin is over with other members, and is the same.
        let hasChanged = !isRebalancing && (members.map { $0 != ids } ?? false)
        if hasBegun || hasChanged { rebalanceCount += 1 }
        (members, isRebalancing) = (ids, group.isRebalancing)
    }
}
