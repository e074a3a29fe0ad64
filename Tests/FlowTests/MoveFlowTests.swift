import Testing

extension FlowTests {
    /// An environment goes to another installation while its devices work, in small; its stream is cut once.
    struct MoveFlowTests {
        @Test(.timeLimit(.minutes(20))) func devicesWorkOnAtTheNewPlaceAndNothingIsLostOrDoubled() async throws {
            let said = try await runWorkbench(
                ["move", "--objects", "4000", "--devices", "6", "--pause", "500", "--cuts", "1"], within: .seconds(900))
            #expect(said.contains("the stream was cut, and goes on"), "\(said)")
            #expect(said.contains("longest pause of a device"), "\(said)")
            // What was asked for again was answered at the old place.
            let asked = try #require(said.firstMatch(of: try Regex("([0-9]+) answers asked for again")))
            #expect(Int(asked.output[1].substring ?? "") ?? 0 > 0, "\(said)")
        }
    }
}
