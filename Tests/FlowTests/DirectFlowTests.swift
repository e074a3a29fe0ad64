import Foundation
import LocalCluster
import Testing

extension FlowTests {
    /// The submitter's way without a device.
    struct DirectFlowTests {
        @Test(.timeLimit(.minutes(20))) func everyEntryIsInTheBackEndOnce() async throws {
            try await withSuite("direct", .withoutGateway) { suite in
                let flow = try await DirectFlow(suite, people: 5, entries: 100, seed: 1)
                try await flow.write(pause: .milliseconds(1))
                try await flow.verify()
            }
        }

        /// Killed: relay, submitter, PostgreSQL, and the broker, which comes back empty.
        @Test(.timeLimit(.minutes(20))) func everyEntryIsInTheBackEndOnceWhateverIsKilled() async throws {
            let given = ProcessInfo.processInfo.environment["FLOW_SEED"]
            let seed = Killer.printedSeed("kills without devices", given: given)
            try await withSuite("direct-kills", .withoutGateway) { suite in
                let flow = try await DirectFlow(suite, people: 5, entries: 200, seed: seed)
                let killer = Killer(
                    suite: suite, parts: [.relay, .submitter, .database, .broker], seed: seed,
                    pause: .milliseconds(1_200))
                async let kills: Void = killer.kill(20)
                try await flow.write(pause: .milliseconds(110))
                try await kills
                try await flow.verify()
            }
        }

        /// The group is away while events are published, and while the broker loses them.
        @Test(.timeLimit(.minutes(20))) func aGroupThatWasAwayWhileTheBrokerWasEmptiedMissesNothing() async throws {
            try await withSuite("away", .withoutGateway) { suite in
                let flow = try await DirectFlow(suite, people: 3, entries: 60, seed: 2)
                try await flow.write(through: 20, pause: .milliseconds(1))
                try await flow.verify(through: 20)
                await suite.kill9(.submitter)
                try await flow.write(from: 20, through: 40, pause: .milliseconds(1))
                try await suite.restart(.broker)
                try await flow.write(from: 40, through: 60, pause: .milliseconds(1))
                try suite.start(.submitter)
                try await flow.verify()
            }
        }

        /// SIGTERM while entries flow: what was begun is finished, and another process goes on.
        @Test(.timeLimit(.minutes(20))) func servicesStopInOrderWithinTheirBound() async throws {
            try await withSuite("stop") { suite in
                let flow = try await DirectFlow(suite, people: 3, entries: 60, seed: 3)
                try await suite.post("/sandbox/switches", Data(#"{"latencyMs":200}"#.utf8))
                try await flow.write(pause: .milliseconds(1))
                for part in LocalCluster.Part.wayOfAnEntry {
                    let end = await suite.terminate(part, within: .seconds(120))
                    #expect(end == .exited(status: 0), "\(part.name)")
                    try suite.start(part)
                }
                try await flow.verify()
            }
        }
    }
}

extension LocalCluster.Options {
    /// For flows without devices.
    static var withoutGateway: LocalCluster.Options {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .initializer, .submitter]
        return options
    }
}

/// Lends a suite; when `body` fails, tells what its processes said last.
func withSuite(
    _ name: String, _ options: LocalCluster.Options = .quick, _ body: (LocalCluster) async throws -> Void
) async throws {
    let suite = try await LocalCluster(name, options)
    do {
        try await body(suite)
    } catch {
        for part in LocalCluster.Part.services { print(suite.process(part)?.logTail() ?? "") }
        await suite.stop()
        throw error
    }
    #expect(suite.fallen.isEmpty)
    await suite.stop()
}
