import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// Random work on teams, tasks, positions and shares, also offline, while services are killed: all data converge.
    struct ConvergeFlowTests {
        /// `FLOW_SEED` is the first of the seeds of another run.
        @Test(.timeLimit(.minutes(60))) func allDataConvergeDespiteKills() async throws {
            let first = ProcessInfo.processInfo.environment["FLOW_SEED"].map { ["--first", $0] } ?? []
            try await runWorkbench(["converge", "--seeds", "20"] + first, within: .seconds(2_400))
        }
    }
}
