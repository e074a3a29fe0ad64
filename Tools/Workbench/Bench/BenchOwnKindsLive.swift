import ArgumentParser
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres

/// A new version of the declared kinds while many devices are live, compared with a write without one.
struct BenchOwnKindsLive: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "own-kinds-live",
        abstract: "Measure a new version of the kinds while devices are live.",
        discussion: """
            Each run writes an object of a declared kind to /common, which all devices receive. Then fieldpost schema \
            apply adds a kind, and an object of it is sent until the gateway accepts it. The devices stay connected \
            for all runs: the benchmark fails if a stream ends or a realm is reset.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of live devices, all of one person.") var count = 10_000

    func validate() throws { try BenchOptions.check(count, in: 2...60_000, "--count") }

    static let targets =
        [
            BenchTarget(
                name: "commit of the version to the first object", figure: "new kind, accepted", statistic: .maximum,
                limit: .atMost(1_000))
        ]
        + Measure.allCases.map { measure in
            BenchTarget(
                name: "\(measure.name), new / declared", figure: measure.figure("new kind"),
                reference: measure.figure("declared kind"))
        }

    enum Measure: String, CaseIterable {
        case time = "all devices"
        case processor = "processor time"
        case memory = "peak memory"

        var name: String { rawValue }
        var unit: String { self == .memory ? "MB" : "ms" }
        func figure(_ kind: String) -> String { "\(kind), \(rawValue)" }
    }

    /// A write that all devices have received.
    private struct Write {
        let acceptedAt: ContinuousClock.Instant
        let values: [Measure: Double]
    }

    var installation: BenchInstallation.Configuration { .devices(count) }

    final class Fixture {
        var sockets: BenchSockets
        var version: Int

        init(_ sockets: consuming BenchSockets, version: Int) {
            self.sockets = sockets
            self.version = version
        }
    }

    /// A schema file whose version declares as many kinds.
    private static func file(version: Int) -> String {
        let kinds = (1...version).map { number in
            """
            "Memo\(number)": {"realms": ["common"], "properties": {"title": {"type": "string"}},
                "permissions": [{"who": ["person"], "may": ["create"]}]}
            """
        }
        return "{\"kinds\": {\(kinds.joined(separator: ","))}}"
    }

    func setUp(_ installation: BenchInstallation) async throws -> Fixture {
        let environment = installation.environment
        try await installation.pool.run { connection in
            try BenchKinds.apply(Self.file(version: 1), to: environment, on: &connection)
        }
        var sockets = BenchSockets(port: try installation.gatewayPort)
        try sockets.open(
            count,
            request: BenchConnections.request(
                "/v1/sync", GatewayClient.firstSyncBody(isLive: true), token: installation.tokens[0]),
            until: "\"checkpoint\"")
        return Fixture(sockets, version: 1)
    }

    func measure(
        _ fixture: Fixture, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        let before = try await write(fixture, on: installation)
        let version = fixture.version + 1
        fixture.version = version
        let file = NSTemporaryDirectory() + "fieldpost-bench-\(UUID().text).json"
        try Self.file(version: version).write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        async let applied = installation.cluster.runCommand(
            ["schema", "apply", BenchInstallation.environmentName, file])
        async let committed = commit(of: version, on: installation)
        let new = try await write(fixture, on: installation)
        report.add("new kind, accepted", "ms", (new.acceptedAt - (try await committed)).inSeconds * 1_000)
        _ = try await applied
        // Reads what followed the object on all streams.
        let after = try await write(fixture, on: installation)
        for measure in Measure.allCases {
            let declared = ((before.values[measure] ?? .nan) + (after.values[measure] ?? .nan)) / 2
            report.add(measure.figure("declared kind"), measure.unit, declared)
            report.add(measure.figure("new kind"), measure.unit, new.values[measure] ?? .nan)
        }
    }

    private static let applyMax = Duration.seconds(60)

    /// Returns when a version was committed: the start of the last query that did not return it.
    private func commit(
        of version: Int, on installation: BenchInstallation
    ) async throws -> ContinuousClock.Instant {
        let query: Statement = "SELECT max(version)::bigint FROM realm.kind_version"
        let end = ContinuousClock.now + Self.applyMax
        while true {
            let start = ContinuousClock.now
            guard start < end else { throw ClusterFailure("version \(version) was not applied") }
            if try await installation.pool.number(query) == version { return start }
            try await Task.sleep(for: .milliseconds(1))
        }
    }

    /// Writes an object of the newest kind until it is accepted, since the kind may not be declared yet, and received.
    private func write(_ fixture: Fixture, on installation: BenchInstallation) async throws -> Write {
        let id = UUID()
        let end = ContinuousClock.now + Self.applyMax
        while true {
            guard ContinuousClock.now < end else { throw ClusterFailure("kind \(fixture.version) is not accepted") }
            let body = BenchKinds.put("Memo\(fixture.version)", id, #"{"title":"A memo"}"#, in: .common)
            installation.resetPeakMemory(of: .gateway)
            let (sent, processorTime) = (ContinuousClock.now, installation.processorTime(of: .gateway))
            let response = try await installation.gateway.send(body, token: installation.tokens[0])
            guard try BenchKinds.isAccepted(response, unless: "unknown-kind") else {
                try await Task.sleep(for: .milliseconds(2))
                continue
            }
            let accepted = ContinuousClock.now
            try fixture.sockets.waitForAll(id.text, unless: "\"reset\":true")
            return Write(
                acceptedAt: accepted,
                values: [
                    .time: (.now - sent).inSeconds * 1_000,
                    .processor: (installation.processorTime(of: .gateway) - processorTime) * 1_000,
                    .memory: installation.memory(of: .gateway, "VmHWM") / 1_024,
                ])
        }
    }
}
