import Testing

extension FlowTests {
    /// A small move between two installations while devices work; the stream is cut once.
    struct MoveFlowTests {
        @Test(.timeLimit(.minutes(20))) func moveKeepsEveryMutationWhileDevicesWork() async throws {
            let report = try await runWorkbench(
                ["move", "--objects", "4000", "--devices", "6", "--pause", "500", "--cuts", "1"], within: .seconds(900))
            #expect(report.contains("the stream was cut, and"), "\(report)")
            #expect(report.contains("longest pause of a device"), "\(report)")
            // The repeated requests had their first response from the old installation.
            let retriedResponses = try #require(report.firstMatch(of: try Regex("responses requested again +([0-9]+)")))
            #expect(Int(retriedResponses.output[1].substring ?? "") ?? 0 > 0, "\(report)")
        }
    }
}
