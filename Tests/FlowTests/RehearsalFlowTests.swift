import Testing

extension FlowTests {
    /// What operators do to a service, in small; `deploy/rehearse` does it to all of them.
    struct RehearsalFlowTests {
        @Test(.timeLimit(.minutes(20))) func aServiceIsStoppedReplacedScaledAndKilledWhileTheDemoRuns() async throws {
            let said = try await runWorkbench(
                ["rehearse", "--service", "share-fan-out", "--people", "4", "--instances", "2"], within: .seconds(900))
            for act in ["stopped", "replaced", "scaled", "killed"] {
                #expect(try said.contains(Regex("share-fan-out +\(act) ")), "\(act): \(said)")
            }
            // It is away for three seconds: others hear of nothing as long, and a device waits for itself alone.
            let row = try #require(said.firstMatch(of: try Regex("share-fan-out +stopped +(.*)")))
            let times = row.output[1].substring?.split(separator: " ").compactMap { Double($0) } ?? []
            try #require(times.count == 7, "\(said)")
            let (accepted, shared) = (times[2], times[4])
            #expect(shared >= 3 && accepted < shared, "\(said)")
        }
    }
}
