import LocalCluster
import Testing

extension FlowTests {
    /// `workbench bench onboard` in small: it ends well only when all came in while an instance was killed.
    @Test(.timeLimit(.minutes(20))) func peopleComeInWhileAnInstanceIsKilled() async throws {
        var options = LocalCluster.Options.quick
        options.services = []
        try await withCluster("bench-onboard", options) { cluster in
            let said = try await cluster.runCommand(
                ["bench", "onboard", "--count", "80", "--rounds", "1"], of: "workbench",
                within: .seconds(900))
            #expect(said.contains("an instance was killed"), "\(said)")
        }
    }
}
