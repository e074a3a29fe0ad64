import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Synchronization

/// Asks `lag-monitor` again and again how old what waits is.
final class LagWatch: Sendable {
    /// No group is behind while the oldest message that it has not finished, and the oldest change that the relay has
    /// not published, are no older.
    static let closedMax = 2.0
    private static let pause = Duration.milliseconds(250)
    private static let answerMax = Duration.seconds(2)

    private struct Seen {
        /// When it was asked last; `nil` while it does not answer.
        var at: ContinuousClock.Instant?
        var seconds = 0.0
        var longest = 0.0
    }

    private let client: Client
    private let url: String
    private let seen = Mutex(Seen())

    init(_ monitor: LocalCluster.Part, on cluster: LocalCluster, client: Client) {
        self.client = client
        url = cluster.adminURL(monitor) + "/metrics"
    }

    /// Watches until the task is cancelled.
    func run() async throws {
        while true {
            let now = ContinuousClock.now
            let seconds = await ask()
            seen.withLock { seen in
                seen.at = seconds.map { _ in now }
                seen.seconds = seconds ?? 0
                seen.longest = max(seen.longest, seconds ?? 0)
            }
            try await Task.sleep(for: Self.pause)
        }
    }

    /// Whether nobody was behind when it was asked after `instant`.
    func isClosed(since instant: ContinuousClock.Instant) -> Bool {
        seen.withLock { seen in seen.at.map { $0 > instant && seen.seconds <= Self.closedMax } ?? false }
    }

    /// The longest since it was asked the last time.
    func takeLongest() -> Double {
        seen.withLock { seen in
            defer { seen.longest = seen.seconds }
            return seen.longest
        }
    }

    /// - Returns: `nil` when nothing is known: it does not answer, or has not seen all yet.
    private func ask() async -> Double? {
        guard
            let response = try? await client.send(
                Request(url, connectMax: Self.answerMax, totalMax: Self.answerMax)), response.status == 200
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
