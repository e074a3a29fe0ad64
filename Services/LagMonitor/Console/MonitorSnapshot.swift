import Essentials
import Kafka
import LagMonitoring
import Synchronization

/// A snapshot of the last collection cycle, for the console.
struct MonitorSnapshot: Sendable {
    /// The time of the collection cycle; `nil` before the first one.
    var at: Timestamp?
    /// Lag by group and topic.
    var sums: [LagSum] = []
    /// Incoming messages per second by topic.
    var inRates: [String: Double] = [:]
    var partitions: [String: Int] = [:]
    var parked: [MonitorStore.Parked] = []
    var reasons: [MonitorStore.Reason] = []
    var behind = MonitorStore.Behind()
    /// Failed collections, with their reason by source.
    var problems: [String: String] = [:]

    /// Sets the lags, rates and partition counts.
    ///
    /// - Parameter lags: Sorted by group, topic and partition.
    mutating func take(_ lags: [PartitionLag]) {
        sums = LagSum.sums(of: lags)
        var seen: Set<String> = []
        for lag in lags {
            let (topic, partition) = (lag.partition.topic, lag.partition.partition)
            guard seen.insert("\(partition) \(topic)").inserted else { continue }
            partitions[topic, default: 0] += 1
            if let rate = lag.inPerSecond { inRates[topic, default: 0] += rate }
        }
    }
}

/// Passes snapshots from the monitor's thread to the console.
final class SnapshotBoard: Sendable {
    private struct State {
        var snapshot = MonitorSnapshot()
        var history = SampleHistory()
    }

    private let state = Mutex(State())

    /// Replaces the snapshot, and adds its lags to the history of one hour.
    func publish(_ snapshot: MonitorSnapshot) {
        state.withLock { state in
            state.snapshot = snapshot
            if let at = snapshot.at { state.history.add(snapshot.sums, at: at.millisecondsSinceEpoch) }
        }
    }

    var snapshot: MonitorSnapshot { state.withLock { $0.snapshot } }
    var history: SampleHistory { state.withLock { $0.history } }
}
