import Telemetry
import Essentials
import LagMonitoring

/// What `lag-monitor` tells beside groups' lags: what waits in PostgreSQL, and how it fares itself.
extension LagPage {
    /// What workers could do now: messages that are there, and parked keys that are due.
    mutating func tellBacklog(_ lags: [PartitionLag], _ parked: [MonitorStore.Parked]) {
        var due: [String: [String: Int64]] = [:]
        for parked in parked { due[parked.group, default: [:]][parked.topic] = parked.dueCount }
        for sum in LagSum.sums(of: lags) {
            let count = sum.count + (due[sum.group]?[sum.topic] ?? 0)
            metrics.add("fieldpost_workable_backlog", labels(sum.group, sum.topic), Double(count))
        }
    }

    mutating func tell(_ parked: [MonitorStore.Parked]) {
        for parked in parked {
            let states = [
                ("due", parked.dueCount), ("waiting", parked.waitingCount), ("circuit", parked.circuitCount),
                ("dead", parked.deadCount),
            ]
            for (state, count) in states {
                metrics.add(
                    "fieldpost_parked_keys", labels(parked.group, parked.topic) + [("state", state)], Double(count))
            }
        }
    }

    mutating func tell(_ reasons: [MonitorStore.Reason]) {
        for reason in reasons {
            let state = reason.isDead ? "dead" : "waiting"
            metrics.add(
                "fieldpost_parked_reasons", labels(reason.group) + [("reason", reason.text), ("state", state)],
                Double(reason.count))
        }
    }

    mutating func tell(_ circuits: [MonitorStore.OpenCircuit]) {
        for circuit in circuits {
            metrics.add(
                "fieldpost_circuit_keys", labels(circuit.group) + [("environment", circuit.environment)],
                Double(circuit.keyCount))
        }
    }

    mutating func tell(_ behind: MonitorStore.Behind) {
        metrics.add("fieldpost_relay_behind_environments", [], Double(behind.environmentCount))
        metrics.add("fieldpost_relay_behind_sum_positions", [], Double(behind.positionCount))
        for environment in behind.worst {
            let place = [("environment", environment.name)]
            metrics.add("fieldpost_relay_behind_positions", place, Double(environment.positionCount))
            if let seconds = environment.seconds { metrics.add("fieldpost_relay_behind_seconds", place, seconds) }
        }
    }

    mutating func tell(round: Duration, problemCount: Int) {
        metrics.add("fieldpost_monitor_round_seconds", [], round.inSeconds)
        metrics.add("fieldpost_monitor_problems", [], Double(problemCount))
    }
}
