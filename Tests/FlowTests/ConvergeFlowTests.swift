import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// Random work on teams, tasks, positions, shares and objects of own kinds, also offline, while services are
    /// killed: all data converge. Half of the devices use the PowerSync protocol.
    struct ConvergeFlowTests {
        @Test(.timeLimit(.minutes(60)), arguments: Seeds.random(1, thorough: 25, for: "converge"))
        func allDataConvergeDespiteKills(first: UInt64) async throws {
            try await runWorkbench(["converge", "--seeds", "20", "--first", "\(first)"], within: .seconds(2_400))
        }
    }
}
