import Testing

@testable import LagMonitoring

struct AssemblyTests {
    private func snapshot(_ ids: Set<String>, isRebalancing: Bool = false) -> LagSnapshot.Group {
        LagSnapshot.Group(
            name: "g", isKnown: true, offsets: [:], memberCount: ids.count, memberIDs: ids, isRebalancing: isRebalancing
        )
    }

    @Test func rebalanceSeenRepeatedlyCountsOnce() {
        var membership = GroupMembership()
        membership.update(snapshot(["a", "b"]))
        #expect(membership.rebalanceCount == 0)
        for _ in 0..<5 { membership.update(snapshot(["a", "b"], isRebalancing: true)) }
        membership.update(snapshot(["a", "c"]))
        #expect(membership.rebalanceCount == 1)
        membership.update(snapshot(["a", "c"]))
        #expect(membership.rebalanceCount == 1)
    }

    @Test func rebalanceBetweenSnapshotsIsDetectedByMembers() {
        var membership = GroupMembership()
        membership.update(snapshot(["a"]))
        membership.update(snapshot(["a", "b"]))
        membership.update(snapshot(["a", "b"]))
        #expect(membership.rebalanceCount == 1)
    }
}
