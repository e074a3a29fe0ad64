import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// People work at random on teams, tasks, positions and shares, on devices and offline too, while what carries that
    /// is killed: at rest everybody sees what is theirs.
    struct ConvergeFlowTests {
        /// `FLOW_SEED` is the first of the seeds of another run.
        @Test(.timeLimit(.minutes(60))) func everybodySeesWhatIsTheirs() async throws {
            let first = ProcessInfo.processInfo.environment["FLOW_SEED"].map { ["--first", $0] } ?? []
            try await runWorkbench(["converge", "--seeds", "20"] + first, within: .seconds(2_400))
        }
    }
}
