import LocalCluster
import Testing

@Suite struct RestartPolicyTests {
    @Test func eachWaitIsTwiceTheOneBefore() {
        var policy = RestartPolicy()
        let waits = (0..<7).map { _ in policy.ended(after: .seconds(1)) }
        #expect(waits == [1, 2, 4, 8, 16, 30, 30].map { Duration.seconds($0) })
    }

    @Test func longRunningProcessIsRestartedSoon() {
        var policy = RestartPolicy()
        for _ in 0..<5 { _ = policy.ended(after: .seconds(60)) }
        #expect(policy.ended(after: .seconds(61)) == .seconds(1))
        #expect(policy.ended(after: .seconds(1)) == .seconds(2))
    }
}
