import Essentials
import Kafka
import LagMonitoring
import Synchronization

/// What the monitor saw last, for who looks at the console.
struct Look: Sendable {
    /// When it looked; `nil` before the first time.
    var at: Timestamp?
    /// By group and topic.
    var sums: [LagSum] = []
    /// Messages a second that come to a topic.
    var comes: [String: Double] = [:]
    var partitions: [String: Int] = [:]
    var parked: [MonitorStore.Parked] = []
    var reasons: [MonitorStore.Reason] = []
    var behind = MonitorStore.Behind()
    /// What could not be seen, and why.
    var problems: [String: String] = [:]

    init() {}

    /// - Parameter lags: Ordered by group, topic and partition.
    mutating func take(_ lags: [PartitionLag]) {
        sums = LagSum.sums(of: lags)
        var seen: Set<String> = []
        for lag in lags {
            let (topic, partition) = (lag.partition.topic, lag.partition.partition)
            guard seen.insert("\(partition) \(topic)").inserted else { continue }
            partitions[topic, default: 0] += 1
            if let pace = lag.comesPerSecond { comes[topic, default: 0] += pace }
        }
    }
}

/// Where the monitor's thread leaves what it saw, and the console finds it.
final class LookBoard: Sendable {
    private struct State {
        var look = Look()
        var history = SampleHistory()
    }

    private let state = Mutex(State())

    /// A look takes the place of the one before; its figures are kept for an hour.
    func publish(_ look: Look) {
        state.withLock { state in
            state.look = look
            if let at = look.at { state.history.take(look.sums, at: at.millisecondsSinceEpoch) }
        }
    }

    var look: Look { state.withLock { $0.look } }
    var history: SampleHistory { state.withLock { $0.history } }
}
