import Testing

@testable import LagMonitoring

/// The examples of Burrow's own evaluator tests, with its results.
struct LagStatusRuleTests {
    struct Example: Sendable {
        let offsets: [Int64]
        let lags: [Int64?]
        var recentEnds: [Int64]
        let lag: Int64
        /// Seconds, as the commits' times: 100, 200, ….
        let now: Int64
        let status: LagStatus
    }

    private static let growing: [Int64] = [1000, 2000, 3000, 4000, 5000]

    private static let examples = [
        Example(
            offsets: growing, lags: [0, 50, 100, 150, 200], recentEnds: [5200], lag: 200, now: 600, status: .ok),
        // Silent for exactly as long as the commits span.
        Example(
            offsets: growing, lags: [0, 50, 100, 150, 200], recentEnds: [5200], lag: 200, now: 900, status: .ok),
        Example(
            offsets: growing, lags: [0, 50, 100, 150, 200], recentEnds: [5200], lag: 200, now: 1000, status: .stop),
        Example(
            offsets: growing, lags: [50, 100, 150, 200, 250], recentEnds: [5250], lag: 250, now: 1000, status: .stop),
        Example(
            offsets: Array(repeating: 1000, count: 5), lags: [0, 50, 100, 150, 200], recentEnds: [1200], lag: 200,
            now: 600, status: .ok),
        Example(
            offsets: Array(repeating: 1000, count: 5), lags: [100, 150, 200, 250, 300], recentEnds: [1300], lag: 300,
            now: 600, status: .stall),
        Example(
            offsets: Array(repeating: 1000, count: 5), lags: [100, 100, 100, 100, 100], recentEnds: [1100], lag: 100,
            now: 600, status: .stall),
        Example(
            offsets: [1000, 2000, 3000, 2000, 4000], lags: [100, 150, 200, 1250, 300], recentEnds: [4300], lag: 300,
            now: 600, status: .rewind),
        // At the end now, regardless of earlier commits.
        Example(offsets: growing, lags: [50, 100, 150, 200, 250], recentEnds: [5250], lag: 0, now: 1000, status: .ok),
        // Commits with unknown lag change nothing.
        Example(
            offsets: [1000, 1500, 2000, 2500, 3000], lags: [0, nil, 50, nil, 100], recentEnds: [3200], lag: 200,
            now: 600, status: .ok),
        Example(
            offsets: growing, lags: [50, 100, nil, 200, 250], recentEnds: [5250], lag: 250, now: 600, status: .warn),
        Example(
            offsets: growing, lags: [250, 200, 150, 100, 50], recentEnds: [5050], lag: 50, now: 600, status: .ok),
    ]

    @Test(arguments: examples) func statusesEqualBurrows(example: Example) {
        let commits = zip(example.offsets, example.lags).enumerated().map { index, commit in
            CommitSample(offset: commit.0, milliseconds: Int64(index + 1) * 100_000, lag: commit.1)
        }
        #expect(
            LagStatusRule.status(
                commits: commits, recentEnds: example.recentEnds, lag: example.lag, now: example.now * 1_000)
                == example.status)
    }

    /// Burrow's issues 290 and 303: a group that was at the end for long is behind by the new messages only.
    @Test func newMessageDoesNotCauseStop() {
        let commits = (0..<15).map { number in
            CommitSample(offset: 792_748_079 + Int64(number), milliseconds: 1_000 * Int64(number), lag: 0)
        }
        func status(_ recentEnds: [Int64], _ lag: Int64) -> LagStatus {
            LagStatusRule.status(commits: commits, recentEnds: recentEnds, lag: lag, now: 31_000)
        }
        #expect(status([792_749_024, 792_749_000, 792_748_800, 792_748_600, 792_748_500], 931) == .stop)
        #expect(status([792_748_094, 792_748_093, 792_748_093, 792_748_093], 1) == .ok)
    }

    @Test func groupWithoutCommitsIsOK() {
        #expect(LagStatusRule.status(commits: [], recentEnds: [5], lag: 5, now: 0) == .ok)
    }
}
