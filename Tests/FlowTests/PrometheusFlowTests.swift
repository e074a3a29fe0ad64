import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import Testing

extension FlowTests {
    /// Prometheus scrapes every service, and alerts fire and resolve with their causes: a dead-lettered key, a gateway
    /// that does not respond, a relay without a leader, a database, a broker and a back end that are unavailable.
    @Test(.timeLimit(.minutes(20))) func prometheusReadsAllServicesAndAlertsBeginAndEnd() async throws {
        let monitor = LocalCluster.Part(Services.lagMonitor)
        var options = LocalCluster.Options.quick
        options.services = LocalCluster.Part.services
        options.variables[monitor, default: [:]]["FIELDPOST_MONITOR_INTERVAL"] = "300ms"
        try await withCluster("prometheus", options) { cluster in
            let prometheus = try RunningPrometheus(cluster, options.services)
            defer { prometheus.process.kill9() }
            try await eventually("all services are read") { try await prometheus.silentServices() }
            try await eventually("nothing is wrong") {
                let firing = try await prometheus.firing()
                return firing.isEmpty ? nil : "\(firing)"
            }

            try await expectDeadLetteredKey(cluster, prometheus)
            try await prometheus.expect("FieldpostServiceUnavailable realm-gateway") {
                cluster.freeze(.gateway)
            } until: {
                cluster.thaw(.gateway)
            }
            try await expectMissingLeader(cluster, prometheus)
            try await prometheus.expect("FieldpostServiceUnavailable onboarding") {
                await cluster.kill9(.database)
            } until: {
                try cluster.start(.database)
            }
            try await prometheus.expect("FieldpostMonitorBlind lag-monitor") {
                await cluster.kill9(.broker)
            } until: {
                try cluster.start(.broker)
            }
            let flow = try await DirectFlow(cluster, people: 2, entries: 30, seed: 4)
            try await prometheus.expect("FieldpostBackEndUnavailable lag-monitor") {
                await cluster.kill9(.sap)
                try await flow.write(pause: .milliseconds(1))
            } until: {
                try cluster.start(.sap)
            }
            try await flow.verify()
        }
    }

    private func expectDeadLetteredKey(_ cluster: LocalCluster, _ prometheus: RunningPrometheus) async throws {
        try await prometheus.expect("FieldpostDeadLetteredKeys") {
            var connection = try Connection(cluster.conninfo)
            try connection.run(
                """
                INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position,
                    reason, is_dead, is_circuit, attempts, next_at)
                VALUES ('entry-submitter', 1, 'k', 'entry.events', 0, 'k', 1, 'a test', true, false, 1, now())
                """)
        } until: {
            var connection = try Connection(cluster.conninfo)
            try connection.run("DELETE FROM pipeline.parked WHERE key = 'k'")
        }
    }

    /// Another session holds the lock of the relay.
    private func expectMissingLeader(_ cluster: LocalCluster, _ prometheus: RunningPrometheus) async throws {
        // The key of `RelayStore`.
        let key: Int64 = 0x6669_656c_6472_6c79
        var connection = try Connection(cluster.conninfo)
        await cluster.kill9(.relay)
        try connection.run("SELECT pg_advisory_lock(\(key))")
        try await prometheus.expect("FieldpostLeaderMissing change-relay") {
            try cluster.start(.relay)
        } until: {
            try connection.run("SELECT pg_advisory_unlock(\(key))")
        }
    }

    /// A synthetic probe passes relay, broker and a worker, and is late if one of them is unavailable.
    @Test(.timeLimit(.minutes(20))) func probeReportsEndToEndDelivery() async throws {
        let monitor = LocalCluster.Part(Services.lagMonitor)
        let sharing = LocalCluster.Part(Services.shareFanOut)
        var options = LocalCluster.Options.quick
        options.services = [.relay, sharing, monitor]
        options.variables[monitor] = [
            "FIELDPOST_MONITOR_INTERVAL": "200ms", "FIELDPOST_MONITOR_PROBE": "probe",
        ]
        try await withCluster("probe", options) { cluster in
            try await eventually("without its environment, all are lost") {
                let seen = try await ProbeFigures(cluster, monitor)
                return seen.lost >= 2 && seen.count == 0 ? nil : "\(seen)"
            }
            var connection = try Connection(cluster.conninfo)
            try connection.run("INSERT INTO realm.environment (name) VALUES ('probe')")
            try await eventually("notes are delivered") {
                let seen = try await ProbeFigures(cluster, monitor)
                return seen.count >= 5 ? nil : "\(seen)"
            }
            let before = try await ProbeFigures(cluster, monitor)
            #expect(before.seconds / before.count < 5, "\(before)")
            await cluster.kill9(sharing)
            try await eventually("one is lost") {
                let seen = try await ProbeFigures(cluster, monitor)
                return seen.lost > before.lost ? nil : "\(seen)"
            }
            try cluster.start(sharing)
            let lost = try await ProbeFigures(cluster, monitor)
            try await eventually("notes are delivered again") {
                let seen = try await ProbeFigures(cluster, monitor)
                return seen.count >= lost.count + 3 ? nil : "\(seen)"
            }
        }
    }
}

/// The probe's metrics of `lag-monitor`.
private struct ProbeFigures {
    let count: Double
    let seconds: Double
    let lost: Double

    init(_ cluster: LocalCluster, _ monitor: LocalCluster.Part) async throws {
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(Request(cluster.adminURL(monitor) + "/metrics"))
        let lines = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        func value(_ name: String) -> Double {
            lines.first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) } ?? 0
        }
        count = value("fieldpost_probe_round_trip_seconds_count")
        seconds = value("fieldpost_probe_round_trip_seconds_sum")
        lost = value("fieldpost_probe_lost_total")
    }
}

/// Debian's Prometheus, with the project's rules, in which nothing is waited for.
private struct RunningPrometheus {
    let process: ClusterProcess
    private let url: String
    private let services: [LocalCluster.Part]

    init(_ cluster: LocalCluster, _ services: [LocalCluster.Part]) throws {
        let project = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let executable = project.appendingPathComponent(".build/prometheus").path
        try #require(
            FileManager.default.isExecutableFile(atPath: executable), "no \(executable); deploy/test makes it")
        let rules = try String(
            contentsOf: project.appendingPathComponent("deploy/prometheus/fieldpost.rules.yaml"), encoding: .utf8)
        let folder = cluster.folder.path
        try rules.replacing(/for: \d+m/, with: "for: 1s")
            .write(toFile: "\(folder)/rules.yaml", atomically: true, encoding: .utf8)
        var text = """
            global: {scrape_interval: 1s, evaluation_interval: 1s}
            rule_files: [\(folder)/rules.yaml]
            scrape_configs:

            """
        for part in services {
            let target = cluster.adminURL(part).dropFirst("http://".count)
            text += "  - {job_name: \(part.name), static_configs: [{targets: ['\(target)']}]}\n"
        }
        try text.write(toFile: "\(folder)/prometheus.yaml", atomically: true, encoding: .utf8)
        let port = try Ports.free()
        process = try ClusterProcess(
            ClusterProcess.Command(
                executable: executable,
                arguments: [
                    "--config.file=\(folder)/prometheus.yaml", "--storage.tsdb.path=\(folder)/prometheus",
                    "--web.listen-address=127.0.0.1:\(port)",
                ], environment: ["PATH": "/usr/bin:/bin"], logPath: "\(folder)/prometheus.log"))
        (url, self.services) = ("http://127.0.0.1:\(port)", services)
    }

    private struct Targets: Decodable {
        struct Contents: Decodable { let activeTargets: [Target] }
        struct Target: Decodable {
            let scrapePool: String
            let health: String
            let lastError: String
        }
        let data: Contents
    }

    private struct Alerts: Decodable {
        struct Contents: Decodable { let alerts: [Alert] }
        struct Alert: Decodable {
            let labels: [String: String]
            let state: String
        }
        let data: Contents
    }

    /// The services of which it could not read anything yet; `nil` when there are none.
    func silentServices() async throws -> String? {
        guard let found = try await get("targets", as: Targets.self) else { return "no response: \(process.logTail())" }
        let read = Set(found.data.activeTargets.filter { $0.health == "up" }.map(\.scrapePool))
        let silent = services.map(\.name).filter { !read.contains($0) }
        return silent.isEmpty ? nil : "\(silent): \(found.data.activeTargets.map(\.lastError))"
    }

    /// The alerts that fire: their names, and the services if they have one.
    func firing() async throws -> Set<String> {
        let alerts = try await get("alerts", as: Alerts.self)?.data.alerts.filter { $0.state == "firing" } ?? []
        return Set(alerts.map { [$0.labels["alertname"], $0.labels["job"]].compactMap(\.self).joined(separator: " ") })
    }

    /// Expects that an alert fires after `fault`, and resolves after `repair`.
    func expect(
        _ alert: String, after fault: () async throws -> Void, until repair: () async throws -> Void
    ) async throws {
        try await fault()
        try await eventually("\(alert) fires") {
            let firing = try await firing()
            return firing.contains(alert) ? nil : "\(firing)"
        }
        try await repair()
        try await eventually("\(alert) is resolved") {
            let firing = try await firing()
            return firing.contains(alert) ? "\(firing)" : nil
        }
    }

    /// - Returns: `nil` while it does not respond.
    private func get<Answer: Decodable>(_ what: String, as type: Answer.Type) async throws -> Answer? {
        let client = Client()
        defer { client.shutDown() }
        guard let response = try? await client.send(Request(url + "/api/v1/" + what)), response.status == 200 else {
            return nil
        }
        return try JSONDecoder().decode(type, from: Data(response.body))
    }
}
