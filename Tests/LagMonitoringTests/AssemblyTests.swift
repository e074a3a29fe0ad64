import Testing

@testable import LagMonitoring

struct AssemblyTests {
    private func look(_ ids: Set<String>, isRebalancing: Bool = false) -> LagLook.Group {
        LagLook.Group(
            name: "g", isKnown: true, offsets: [:], memberCount: ids.count, memberIDs: ids, isRebalancing: isRebalancing
        )
    }

    @Test func aRebalanceCountsOnceHoweverOftenItIsSeen() {
        var assembly = Assembly()
        assembly.take(look(["a", "b"]))
        #expect(assembly.rebalanceCount == 0)
        for _ in 0..<5 { assembly.take(look(["a", "b"], isRebalancing: true)) }
        assembly.take(look(["a", "c"]))
        #expect(assembly.rebalanceCount == 1)
        assembly.take(look(["a", "c"]))
        #expect(assembly.rebalanceCount == 1)
    }

    @Test func oneThatWasOverBetweenTwoLooksIsSeenByItsMembers() {
        var assembly = Assembly()
        assembly.take(look(["a"]))
        assembly.take(look(["a", "b"]))
        assembly.take(look(["a", "b"]))
        #expect(assembly.rebalanceCount == 1)
    }
}
