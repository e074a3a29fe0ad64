import Essentials
import LagMonitoring
import Telemetry

/// Metrics from PostgreSQL, and of `lag-monitor` itself.
extension LagPage {
    /// Exports the workable backlog: available messages and due deferred keys.
    mutating func exportBacklog(_ lags: [PartitionLag], _ parked: [MonitorStore.Parked]) {
        var due: [String: [String: Int64]] = [:]
        for parked in parked { due[parked.group, default: [:]][parked.topic] = parked.dueCount }
        for sum in LagSum.sums(of: lags) {
            let count = sum.count + (due[sum.group]?[sum.topic] ?? 0)
            metrics.add("fieldpost_workable_backlog", labels(sum.group, sum.topic), Double(count))
        }
    }

    mutating func export(_ parked: [MonitorStore.Parked]) {
        for parked in parked {
            let states = [
                ("due", parked.dueCount), ("waiting", parked.waitingCount), ("circuit", parked.circuitCount),
                ("dead_lettered", parked.deadCount),
            ]
            for (state, count) in states {
                metrics.add(
                    "fieldpost_deferred_keys", labels(parked.group, parked.topic) + [("state", state)], Double(count))
            }
        }
    }

    mutating func export(_ reasons: [MonitorStore.Reason]) {
        for reason in reasons {
            let state = reason.isDead ? "dead_lettered" : "waiting"
            metrics.add(
                "fieldpost_deferred_keys_by_reason",
                labels(reason.group) + [("reason", reason.text), ("state", state)], Double(reason.count))
        }
    }

    mutating func export(_ circuits: [MonitorStore.OpenCircuit]) {
        for circuit in circuits {
            metrics.add(
                "fieldpost_circuit_keys", labels(circuit.group) + [("environment", circuit.environment)],
                Double(circuit.keyCount))
        }
    }

    mutating func export(_ behind: MonitorStore.Behind) {
        metrics.add("fieldpost_relay_behind_environments", [], Double(behind.environmentCount))
        metrics.add("fieldpost_relay_behind_sum_positions", [], Double(behind.positionCount))
        for environment in behind.worst {
            let labels = [("environment", environment.name)]
            metrics.add("fieldpost_relay_behind_positions", labels, Double(environment.positionCount))
            if let seconds = environment.seconds { metrics.add("fieldpost_relay_behind_seconds", labels, seconds) }
        }
    }

    /// - Parameter archiveAge: Seconds; `nil` if `archive_mode` is off.
    mutating func export(archiveAge: Double?) {
        if let archiveAge { metrics.add("fieldpost_archive_age_seconds", [], archiveAge) }
    }

    mutating func export(cycle: Duration, problemCount: Int) {
        metrics.add("fieldpost_monitor_cycle_seconds", [], cycle.inSeconds)
        metrics.add("fieldpost_monitor_problems", [], Double(problemCount))
    }
}
