import Essentials
import Synchronization

/// Kills components of a cluster at random moments with signal 9 and restarts them at once, or freezes them for a
/// while.
package struct Killer: Sendable {
    let cluster: LocalCluster
    let parts: [LocalCluster.Part]
    let seed: UInt64
    /// The mean time between two kills; the maximum is nearly twice as long.
    let pause: Duration
    /// Maximum duration of a freeze: half of the actions are freezes, during which others are killed; zero: no freezes.
    let freezeMax: Duration
    private let restarts = Restarts()

    /// Maximum time until all processes run after the last kill.
    private static let restartMax = Duration.seconds(120)

    package init(
        cluster: LocalCluster, parts: [LocalCluster.Part], seed: UInt64, pause: Duration, freezeMax: Duration = .zero
    ) {
        self.cluster = cluster
        self.parts = parts
        self.seed = seed
        self.pause = pause
        self.freezeMax = freezeMax
    }

    /// Kills or freezes `count` times, each component once per random order. At the end no component is frozen.
    package func kill(_ count: Int) async throws {
        var random = SplitMix64(seed: seed)
        var order: [LocalCluster.Part] = []
        var thaws: [LocalCluster.Part: ContinuousClock.Instant] = [:]
        defer { for part in thaws.keys { cluster.thaw(part) } }
        for _ in 0..<count {
            // The number of random draws per action is constant, so that the seed repeats the run.
            let wait = pause * Double.random(in: 0.2...1.8, using: &random)
            let (freezes, time) = (
                Bool.random(using: &random), freezeMax * Double.random(in: 0.1...1, using: &random)
            )
            try await Task.sleep(for: wait)
            for (part, time) in thaws where time <= .now {
                cluster.thaw(part)
                thaws[part] = nil
            }
            try startWhatEnded()
            if order.isEmpty { order = parts.shuffled(using: &random) }
            let part = order.removeLast()
            if freezeMax > .zero, freezes, thaws[part] == nil {
                cluster.freeze(part)
                thaws[part] = .now + time
            } else {
                // A frozen process can be killed.
                try await cluster.restart(part)
                thaws[part] = nil
            }
        }
        for (part, time) in thaws.sorted(by: { $0.value < $1.value }) {
            try await Task.sleep(until: time, clock: .continuous)
            cluster.thaw(part)
        }
        let deadline = ContinuousClock.now + Self.restartMax
        while let part = parts.first(where: hasEnded) {
            guard .now < deadline else { throw ClusterFailure("\(part.name) ends after each restart") }
            try startWhatEnded()
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Restarts processes that have ended, as a supervisor does: a service ends if the database is unavailable at its
    /// start, and the mock cluster of librdkafka 2.0 sometimes fails an assertion when members rejoin a group
    /// (`rd_kafka_mock_cgrp_member_add`).
    package func startWhatEnded() throws {
        for part in parts where hasEnded(part) && restarts.mayRestart(part) { try cluster.start(part) }
    }

    private func hasEnded(_ part: LocalCluster.Part) -> Bool { cluster.process(part)?.end != nil }

    /// The times of restarts: each restart of a process delays its next one more.
    ///
    /// Without that, the members of a group returned to the mock cluster at the same moment each time, and it failed
    /// the same assertion 493 times.
    private final class Restarts: Sendable {
        private struct Schedule {
            var backoff = Backoff(first: .milliseconds(500), waitMax: .seconds(15))
            var next: ContinuousClock.Instant?
        }

        private let schedules = Mutex<[LocalCluster.Part: Schedule]>([:])

        /// Returns whether a process may be restarted now.
        func mayRestart(_ part: LocalCluster.Part) -> Bool {
            schedules.withLock { schedules in
                var schedule = schedules[part] ?? Schedule()
                if let next = schedule.next, next > .now { return false }
                schedule.next = .now + schedule.backoff.failed(random: 1)
                schedules[part] = schedule
                return true
            }
        }
    }
}
