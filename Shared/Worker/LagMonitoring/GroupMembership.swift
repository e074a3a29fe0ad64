/// The members of a group over time, to count rebalances.
struct GroupMembership: Sendable {
    private var members: Set<String>?
    private var isRebalancing = false
    private(set) var rebalanceCount = 0
    /// Whether the group had members in any snapshot.
    private(set) var hasHadMembers = false

    /// Counts a rebalance if the members changed. Several rebalances between two snapshots count as one.
    mutating func update(_ group: LagSnapshot.Group) {
        if let count = group.memberCount, count > 0 { hasHadMembers = true }
        guard let ids = group.memberIDs else { return }
        let hasStarted = group.isRebalancing && !isRebalancing
        // A rebalance that was counted at its start ends with other members, and is not counted again.
        let hasChanged = !isRebalancing && (members.map { $0 != ids } ?? false)
        if hasStarted || hasChanged { rebalanceCount += 1 }
        (members, isRebalancing) = (ids, group.isRebalancing)
    }
}
