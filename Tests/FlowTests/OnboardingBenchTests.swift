import Suite
import Testing

extension FlowTests {
    /// `fieldpost bench onboard` in small: it ends well only when all came in while an instance was killed.
    @Test(.timeLimit(.minutes(20))) func peopleComeInWhileAnInstanceIsKilled() async throws {
        var options = Suite.Options.quick
        options.services = []
        try await withSuite("bench-onboard", options) { suite in
            let said = try await suite.runCommand(
                ["bench", "onboard", "--count", "80", "--rounds", "1"], within: .seconds(900))
            #expect(said.contains("an instance was killed"), "\(said)")
        }
    }
}
