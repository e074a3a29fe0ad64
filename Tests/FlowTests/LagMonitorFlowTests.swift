import Foundation
import HTTPClient
import LocalCluster
import Model
import Testing

extension FlowTests {
    /// A group's worker is stopped, then the broker, and both recover: the monitor reports each state.
    @Test(.timeLimit(.minutes(20))) func monitorReportsLaggingGroupsAndTheirTimes() async throws {
        let monitor = LocalCluster.Part(Services.lagMonitor)
        var options = LocalCluster.Options.withoutGateway
        options.services.append(monitor)
        options.variables[monitor, default: [:]]["FIELDPOST_MONITOR_INTERVAL"] = "200ms"
        try await withCluster("monitor", options) { cluster in
            let beginning = Date()
            let flow = try await DirectFlow(cluster, people: 2, entries: 120, seed: 9)
            try await flow.write(through: 20, pause: .milliseconds(5))
            try await flow.verify(through: 20)
            let group = Services.entrySubmitter.name
            try await eventually("nothing waits, and that is committed") {
                let seen = try await MonitorFigures(cluster, monitor)
                let offset = seen.sum("kafka_consumergroup_group_offset", of: group)
                let isDone = offset >= 20 && seen.lag(group) == 0 && seen.seconds(group) == 0 && seen.problems == 0
                return isDone ? nil : seen.text
            }

            await cluster.kill9(.submitter)
            try await flow.write(from: 20, through: 40, pause: .milliseconds(5))
            try await eventually("the monitor and fieldpost lag report the same, with all entries published") {
                let lag = try await cluster.lag(of: group).lag
                let seen = try await MonitorFigures(cluster, monitor)
                return lag >= 20 && seen.lag(group) == Double(lag) && seen.behind == 0 ? nil : "\(lag): \(seen.text)"
            }
            // It may be one that was written just before the worker was killed.
            let seconds = try await MonitorFigures(cluster, monitor).seconds(group)
            #expect((0.001...Date().timeIntervalSince(beginning)).contains(seconds), "\(seconds)")
            try await eventually("it grows older by the second") {
                let seen = try await MonitorFigures(cluster, monitor)
                return seen.seconds(group) >= seconds + 1 ? nil : seen.text
            }
            let figures = try await MonitorFigures(cluster, monitor)
            let exact = figures.sum("fieldpost_lag_seconds_exact", of: group)
            #expect(
                exact > 0 && exact == figures.count("kafka_consumergroup_group_lag_seconds", of: group),
                "\(figures.text)")

            try cluster.start(.submitter)
            try await flow.verify(through: 40)
            try await eventually("nothing waits any more") {
                let seen = try await MonitorFigures(cluster, monitor)
                return seen.lag(group) == 0 && seen.seconds(group) == 0 ? nil : seen.text
            }

            try await expectBackendOutage(flow, cluster, monitor)
            try await expectBrokerOutage(cluster, monitor)
        }
    }

    /// An unavailable back end is no lag, and needs no more workers.
    private func expectBackendOutage(
        _ flow: DirectFlow, _ cluster: LocalCluster, _ monitor: LocalCluster.Part
    ) async throws {
        let group = Services.entrySubmitter.name
        await cluster.kill9(.sap)
        try await flow.write(from: 40, pause: .milliseconds(5))
        try await eventually("keys wait for the back end") {
            let seen = try await MonitorFigures(cluster, monitor)
            let circuit = seen.sum("fieldpost_deferred_keys", of: group, "state=\"circuit\"")
            let due = seen.sum("fieldpost_deferred_keys", of: group, "state=\"due\"")
            let backlog = seen.sum("fieldpost_workable_backlog", of: group)
            // Some of the eighty are in flight to a probe, at most eight per worker.
            return circuit >= 24 && seen.lag(group) == 0 && backlog == due ? nil : seen.text
        }
        try cluster.start(.sap)
        try await flow.verify()
    }

    private func expectBrokerOutage(_ cluster: LocalCluster, _ monitor: LocalCluster.Part) async throws {
        await cluster.kill9(.broker)
        try await eventually("it reports that Kafka is unavailable, and no earlier values") {
            let seen = try await MonitorFigures(cluster, monitor)
            return seen.problems > 0 && !seen.text.contains("kafka_consumergroup") ? nil : seen.text
        }
        try cluster.start(.broker)
        try await eventually("it sees all again") {
            let seen = try await MonitorFigures(cluster, monitor)
            return seen.problems == 0 && seen.text.contains("kafka_consumergroup") ? nil : seen.text
        }
    }
}

/// The metrics of `lag-monitor`.
private struct MonitorFigures {
    /// Its own lines, and not those of its process.
    let text: String

    init(_ cluster: LocalCluster, _ monitor: LocalCluster.Part) async throws {
        let client = Client()
        defer { client.shutDown() }
        let response = try await client.send(Request(cluster.adminURL(monitor) + "/metrics"))
        text = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix("kafka_") || $0.hasPrefix("fieldpost_") }.joined(separator: "\n")
    }

    /// The number of label sets of a group.
    func count(_ name: String, of group: String) -> Double { Double(values(name, of: group, "").count) }

    /// The sum over the label sets of a group; of all of them without one.
    func sum(_ name: String, of group: String? = nil, _ label: String = "") -> Double {
        values(name, of: group, label).reduce(0, +)
    }

    private func values(_ name: String, of group: String?, _ label: String) -> [Double] {
        text.split(separator: "\n")
            .filter { line in
                line.prefix { $0 != "{" && $0 != " " } == name
                    && group.map { line.contains("group=\"\($0)\"") } ?? true && (label.isEmpty || line.contains(label))
            }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
    }

    func lag(_ group: String) -> Double { sum("kafka_consumergroup_group_sum_lag", of: group) }
    func seconds(_ group: String) -> Double { sum("kafka_consumergroup_group_max_lag_seconds", of: group) }
    var behind: Double { sum("fieldpost_relay_behind_positions") }
    /// -1 before its first collection cycle.
    var problems: Double { text.contains("fieldpost_monitor_problems") ? sum("fieldpost_monitor_problems") : -1 }
}
