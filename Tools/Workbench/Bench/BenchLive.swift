import ArgumentParser
import DeviceClient
import Essentials
import LocalCluster
import Model
import Postgres

/// Latency from one device to another of the same person, and from a device to the back end and back.
struct BenchLive: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "live",
        abstract: "Measure the latency between devices, and until release.",
        discussion: """
            The latency of a mutation includes the time until the preceding request has its response. A call of the \
            back end takes 20 ms. Other processes of the machine increase the latency: each run reports the time for \
            which processes waited for a processor or the disk.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Mutations per second.") var rate = 200
    @Option(help: "Duration of a run's mutations, in seconds.") var seconds = 6
    @Option(help: "Entries per run that the back end receives, 20 per second.") var entries = 200

    func validate() throws {
        try BenchOptions.check(rate, in: 1...10_000, "--rate")
        try BenchOptions.check(seconds, in: 1...3_600, "--seconds")
        try BenchOptions.check(entries, in: 1...1_000_000, "--entries")
    }

    static let targets = [
        BenchTarget(name: "line p50, slowest round", figure: "line, p50", statistic: .maximum, limit: .atMost(8)),
        BenchTarget(name: "line p99", figure: "line, p99", limit: .atMost(60)),
    ]

    private static let releaseRate = 20

    private var organisation: Organisation { GeneratedOrganisation.make(people: 1) }

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(services: LocalCluster.Part.entryServices, organisation: organisation)
    }

    final class Fixture {
        let lines = LatencyClock()
        let responses = LatencyClock()
        let released = LatencyClock()
        let entries: BenchEntries
        var sender: BenchSender
        var receiver: Task<Void, any Error>?

        init(_ entries: BenchEntries, _ sender: BenchSender) {
            self.entries = entries
            self.sender = sender
        }

        deinit { receiver?.cancel() }
    }

    func setUp(_ installation: BenchInstallation) async throws -> Fixture {
        try await installation.sap.setSwitches(#"{"latencyMs":20}"#)
        let fixture = Fixture(try await BenchEntries(installation, organisation), try BenchSender(installation))
        fixture.receiver = try await Self.receive(on: installation, fixture.lines, fixture.released)
        return fixture
    }

    func measure(
        _ fixture: Fixture, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        let before = try await Self.logWrites(on: installation)
        try await fixture.sender.send(
            rate * seconds, perSecond: rate, [fixture.lines], responses: fixture.responses
        ) { number in
            Array(#"{"text":"Draft \#(number)","durationSeconds":1800}"#.utf8)
        }
        try await fixture.lines.waitUntilComplete(within: .seconds(10))
        let after = try await Self.logWrites(on: installation)
        let write = (after.milliseconds - before.milliseconds) / max(after.count - before.count, 1)
        report.add("PostgreSQL's fsync, mean", "ms", write)
        report.add("response", fixture.responses.take())
        report.add("line", fixture.lines.take())
        try await fixture.sender.send(entries, perSecond: Self.releaseRate, [fixture.released]) { number in
            try fixture.entries.make(number).fields
        }
        try await fixture.released.waitUntilComplete(within: .seconds(60))
        report.add("released", fixture.released.take())
        _ = fixture.lines.take()
    }

    /// The number of flushes of PostgreSQL's log, and their total time.
    private static func logWrites(
        on installation: BenchInstallation
    ) async throws -> (count: Double, milliseconds: Double) {
        try await installation.pool.run { connection in
            let rows = try connection.run("SELECT wal_sync, wal_sync_time FROM pg_stat_wal")
            return (Double(try rows[0].value(0, as: Int64.self)), try rows[0].value(1))
        }
    }

    /// Opens the stream of the person's other device.
    static func receive(
        on installation: BenchInstallation, _ lines: LatencyClock, _ released: LatencyClock
    ) async throws -> Task<Void, any Error> {
        try await installation.receive(token: installation.tokens[0]) { _, changes, now in
            for change in changes where change.id.kind == .timeEntry {
                lines.stop(change.id.id, at: now)
                if let object = change.object, SeenEntry(object)?.status == .released {
                    released.stop(change.id.id, at: now)
                }
            }
        }
    }
}
