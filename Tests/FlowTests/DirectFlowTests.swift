import Suite
import Testing

/// The submitter's way without a device.
struct DirectFlowTests {
    @Test(.timeLimit(.minutes(3))) func everyEntryIsInTheBackEndOnce() async throws {
        let suite = try await Suite("direct")
        let flow = try await DirectFlow(suite, people: 5, entries: 100, seed: 1)
        try await flow.write(pause: .milliseconds(1))
        try await flow.verify(within: .seconds(20))
        await suite.stop()
    }
}
