import Foundation
import LocalCluster
import TestSupport
import Testing

extension FlowTests {
    /// The submitter's way without a device.
    struct DirectFlowTests {
        @Test(.timeLimit(.minutes(20))) func everyEntryIsInTheBackEndOnce() async throws {
            try await withCluster("direct", .withoutGateway) { cluster in
                let flow = try await DirectFlow(cluster, people: 5, entries: 100, seed: 1)
                try await flow.write(pause: .milliseconds(1))
                try await flow.verify()
            }
        }

        /// Kills relay, submitter, PostgreSQL, and the broker, which is empty after its restart.
        @Test(.timeLimit(.minutes(20)), arguments: Seeds.random(1, for: "kills without devices"))
        func everyEntryHasOneRecordDespiteKills(seed: UInt64) async throws {
            try await withCluster("direct-kills", .withoutGateway) { cluster in
                let flow = try await DirectFlow(cluster, people: 5, entries: 200, seed: seed)
                let killer = Killer(
                    cluster: cluster, parts: [.relay, .submitter, .database, .broker], seed: seed,
                    pause: .milliseconds(1_200))
                async let kills: Void = killer.kill(20)
                try await flow.write(pause: .milliseconds(110))
                try await kills
                try await flow.verify()
            }
        }

        /// The group is stopped while events are published, and while the broker loses them.
        @Test(.timeLimit(.minutes(20))) func stoppedGroupMissesNothingAfterBrokerLoss() async throws {
            try await withCluster("away", .withoutGateway) { cluster in
                let flow = try await DirectFlow(cluster, people: 3, entries: 60, seed: 2)
                try await flow.write(through: 20, pause: .milliseconds(1))
                try await flow.verify(through: 20)
                await cluster.kill9(.submitter)
                try await flow.write(from: 20, through: 40, pause: .milliseconds(1))
                try await cluster.restart(.broker)
                try await flow.write(from: 40, through: 60, pause: .milliseconds(1))
                try cluster.start(.submitter)
                try await flow.verify()
            }
        }

        /// SIGTERM while entries are processed: calls in flight are finished, and another process continues.
        @Test(.timeLimit(.minutes(20))) func servicesStopInOrderWithinTheTimeLimit() async throws {
            try await withCluster("stop") { cluster in
                let flow = try await DirectFlow(cluster, people: 3, entries: 60, seed: 3)
                try await cluster.post("/sandbox/switches", Data(#"{"latencyMs":200}"#.utf8))
                try await flow.write(pause: .milliseconds(1))
                for part in LocalCluster.Part.entryServices {
                    let end = await cluster.terminate(part, within: .seconds(120))
                    #expect(end == .exited(status: 0), "\(part.name)")
                    try cluster.start(part)
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

/// Lends a cluster, and expects at its end that `fieldpost check` reports no differences. When `body` fails, prints the
/// end of its processes' logs.
///
/// - Parameter leaving: The parts of the check in which the flow leaves differences on purpose; each must differ.
func withCluster(
    _ name: String, _ options: LocalCluster.Options = .quick, leaving: Set<String> = [],
    _ body: (LocalCluster) async throws -> Void
) async throws {
    let cluster = try await LocalCluster(name, options)
    do {
        try await body(cluster)
        try await expectConsistent(cluster, except: leaving)
    } catch {
        for part in LocalCluster.Part.services { print(cluster.process(part)?.logTail() ?? "") }
        await cluster.stop()
        throw error
    }
    #expect(cluster.fallen.isEmpty)
    await cluster.stop()
}

/// Expects that `fieldpost check` reports differences in these parts, and in no others.
func expectConsistent(_ cluster: LocalCluster, except parts: Set<String> = []) async throws {
    let found = try await cluster.differences(settle: parts.isEmpty ? .seconds(90) : .seconds(5))
    #expect(found.allSatisfy { parts.contains($0.part) }, "\(found)")
    #expect(Set(found.map(\.part)) == parts)
}
