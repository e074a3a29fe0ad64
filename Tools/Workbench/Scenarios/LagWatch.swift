import LocalCluster
import Synchronization

/// Polls the age of the oldest unprocessed message from `lag-monitor`.
final class LagWatch: Sendable {
    /// Maximum age, in seconds, of the oldest unprocessed message of a group and of the oldest unpublished change, at
    /// which no group counts as lagging.
    static let drainedMax = 2.0
    private static let pause = Duration.milliseconds(250)

    private struct Sample {
        /// The time of the last poll; `nil` while the monitor is unavailable.
        var at: ContinuousClock.Instant?
        var seconds = 0.0
        var longest = 0.0
    }

    private let monitor: LocalCluster.Part
    private let stage: ScenarioStage
    private let seen = Mutex(Sample())

    init(_ monitor: LocalCluster.Part, on stage: ScenarioStage) {
        self.monitor = monitor
        self.stage = stage
    }

    /// Polls until the task is cancelled.
    func run() async throws {
        while true {
            let now = ContinuousClock.now
            let seconds = await poll()
            seen.withLock { seen in
                seen.at = seconds.map { _ in now }
                seen.seconds = seconds ?? 0
                seen.longest = max(seen.longest, seconds ?? 0)
            }
            try await Task.sleep(for: Self.pause)
        }
    }

    /// Whether no group lagged at a poll after `instant`.
    func isDrained(since instant: ContinuousClock.Instant) -> Bool {
        seen.withLock { seen in seen.at.map { $0 > instant && seen.seconds <= Self.drainedMax } ?? false }
    }

    /// Returns the highest age since the last call, in seconds.
    func takeLongest() -> Double {
        seen.withLock { seen in
            defer { seen.longest = seen.seconds }
            return seen.longest
        }
    }

    /// - Returns: `nil` while the monitor is unavailable, or has problems.
    private func poll() async -> Double? {
        guard let metrics = await stage.metrics(of: monitor), metrics.contains("fieldpost_monitor_problems 0") else {
            return nil
        }
        let ages =
            metrics.values(of: "kafka_consumergroup_group_max_lag_seconds")
            + metrics.values(of: "fieldpost_relay_behind_seconds")
        return ages.max()
    }
}
