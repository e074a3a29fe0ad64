import Essentials
import Kafka
import LagMonitoring
import Synchronization

/// A snapshot of the last collection cycle, for the console.
struct MonitorSnapshot: Sendable {
    /// The members of a consumer group.
    struct Group: Sendable {
        let name: String
        /// Their number and ids; `nil` if the brokers do not list them.
        let memberCount: Int?
        let memberIDs: [String]?
        let isRebalancing: Bool
    }

    /// The limit of partitions of groups; beyond it, ``lags`` has only those with a problem.
    static let partitionCountMax = 20_000

    /// The time of the collection cycle; `nil` before the first one.
    var at: Timestamp?
    /// Lag by group and topic.
    var sums: [LagSum] = []
    /// Incoming messages per second by topic.
    var inRates: [String: Double] = [:]
    var partitions: [String: Int] = [:]
    /// Lag by group and partition.
    var lags: [PartitionLag] = []
    var areLagsComplete = true
    var groups: [Group] = []
    var parked: [MonitorStore.Parked] = []
    var reasons: [MonitorStore.Reason] = []
    var behind = MonitorStore.Behind()
    /// Open circuits, those with the most keys first; `nil` if they are unknown.
    var circuits: [MonitorStore.OpenCircuit]?
    /// Failed collections, with their reason by source.
    var problems: [String: String] = [:]

    /// Sets the lags, rates and partition counts.
    ///
    /// - Parameter lags: Sorted by group, topic and partition.
    mutating func take(_ lags: [PartitionLag]) {
        sums = LagSum.sums(of: lags)
        areLagsComplete = lags.count <= Self.partitionCountMax
        self.lags = areLagsComplete ? lags : LagPage.worst(lags, Self.partitionCountMax)
        var seen: Set<String> = []
        for lag in lags {
            let (topic, partition) = (lag.partition.topic, lag.partition.partition)
            guard seen.insert("\(partition) \(topic)").inserted else { continue }
            partitions[topic, default: 0] += 1
            if let rate = lag.inPerSecond { inRates[topic, default: 0] += rate }
        }
    }

    /// Sets the groups' members.
    mutating func take(_ groups: [LagSnapshot.Group]) {
        self.groups = groups.map { group in
            Group(
                name: group.name, memberCount: group.memberCount, memberIDs: group.memberIDs?.sorted(),
                isRebalancing: group.isRebalancing)
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
