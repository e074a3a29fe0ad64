import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Synchronization

/// Polls the age of the oldest unprocessed message from `lag-monitor`.
final class LagWatch: Sendable {
    /// Maximum age, in seconds, of the oldest unprocessed message of a group and of the oldest unpublished change, at
    /// which no group counts as lagging.
    static let drainedMax = 2.0
    private static let pause = Duration.milliseconds(250)
    private static let responseMax = Duration.seconds(2)

    private struct Sample {
        /// The time of the last poll; `nil` while the monitor is unavailable.
        var at: ContinuousClock.Instant?
        var seconds = 0.0
        var longest = 0.0
    }

    private let client: Client
    private let url: String
    private let seen = Mutex(Sample())

    init(_ monitor: LocalCluster.Part, on cluster: LocalCluster, client: Client) {
        self.client = client
        url = cluster.adminURL(monitor) + "/metrics"
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
        guard
            let response = try? await client.send(
                Request(url, connectMax: Self.responseMax, totalMax: Self.responseMax)), response.status == 200
        else { return nil }
        let lines = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        guard lines.contains("fieldpost_monitor_problems 0") else { return nil }
        return
            lines.filter {
                $0.hasPrefix("kafka_consumergroup_group_max_lag_seconds{")
                    || $0.hasPrefix("fieldpost_relay_behind_seconds{")
            }
            .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }.max()
    }
}
