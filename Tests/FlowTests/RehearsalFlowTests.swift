import Testing

extension FlowTests {
    /// Operations on one service; `deploy/rehearse` performs them on all services.
    struct RehearsalFlowTests {
        @Test(.timeLimit(.minutes(20))) func serviceSurvivesOperationsDuringTheDemo() async throws {
            let report = try await runWorkbench(
                ["rehearse", "--service", "share-fan-out", "--people", "4", "--instances", "2"], within: .seconds(900))
            for act in ["stopped", "replaced", "scaled", "killed"] {
                #expect(try report.contains(Regex("share-fan-out +\(act) ")), "\(act): \(report)")
            }
            // The service is stopped for three seconds: shared objects wait as long, a device's own changes do not.
            let row = try #require(report.firstMatch(of: try Regex("share-fan-out +stopped +(.*)")))
            let times = row.output[1].substring?.split(separator: " ").compactMap { Double($0) } ?? []
            try #require(times.count == 7, "\(report)")
            let (accepted, shared) = (times[2], times[4])
            #expect(shared >= 3 && accepted < shared, "\(report)")
        }
    }
}
