import TestSupport
import Testing

@testable import Kafka

/// Commits of offsets below the group's committed ones.
struct LowerCommitsTests {
    private let partition = TopicPartition(topic: "t", partition: 0)
    private let other = TopicPartition(topic: "t", partition: 1)
    private let start = ContinuousClock.now

    private func due(
        _ commits: inout LowerCommits, after wait: Duration = .zero, isStable: Bool = true, finished: Int64? = nil
    ) -> [TopicPartition: Int64] {
        commits.due(now: start + wait, isStable: isStable) { _ in finished }
    }

    private func response(_ commits: inout LowerCommits, _ offset: Int64, isDone: Bool, after wait: Duration = .zero) {
        commits.completed([(partition, offset, isDone)], now: start + wait, random: 0.999)
    }

    @Test func rebalancingGroupGetsNoCommit() {
        var commits = LowerCommits()
        commits.request(partition, from: 3)
        #expect(due(&commits, isStable: false).isEmpty)
        #expect(due(&commits) == [partition: 3])
        #expect(due(&commits, after: .seconds(1)).isEmpty, "its response is waited for")
        response(&commits, 3, isDone: true)
        #expect(commits.takeCommitted() == [partition])
        #expect(commits.takeCommitted().isEmpty)
        #expect(due(&commits, after: .seconds(60)).isEmpty)
    }

    @Test func commitIncludesMessagesFinishedMeanwhile() {
        var commits = LowerCommits()
        commits.request(partition, from: 3)
        #expect(due(&commits, finished: 7) == [partition: 7])
    }

    @Test func failedCommitIsRetriedWithBackoff() {
        var commits = LowerCommits()
        commits.request(partition, from: 0)
        var (now, waits) = (Duration.zero, [Duration]())
        for _ in 0..<4 {
            #expect(due(&commits, after: now) == [partition: 0])
            response(&commits, 0, isDone: false, after: now)
            let failedAt = now
            while due(&commits, after: now, isStable: false).isEmpty, now - failedAt < .seconds(60) {
                now += .milliseconds(100)
                var copy = commits
                if !due(&copy, after: now).isEmpty { break }
            }
            waits.append(now - failedAt)
        }
        #expect(waits == waits.sorted())
        #expect(waits[0] >= .milliseconds(900))
        #expect(waits[3] > .seconds(4))
        #expect(commits.takeCommitted().isEmpty)
    }

    @Test func missingResponseTimesOut() {
        var commits = LowerCommits()
        commits.request(partition, from: 0)
        _ = due(&commits)
        #expect(due(&commits, after: .seconds(14)).isEmpty)
        #expect(due(&commits, after: .seconds(15)) == [partition: 0])
    }

    @Test func librdkafkasOwnCommitIsNotAResponse() {
        var commits = LowerCommits()
        commits.request(partition, from: 0)
        _ = due(&commits)
        response(&commits, 1_000, isDone: true)
        #expect(commits.takeCommitted().isEmpty)
    }

    @Test func librdkafkasOwnCommitDoesNotAdvanceRetry() {
        var commits = LowerCommits()
        commits.request(partition, from: 0)
        _ = due(&commits)
        response(&commits, 0, isDone: false)
        commits.completed([(other, 70, true)], now: start, random: 0)
        #expect(due(&commits, after: .milliseconds(900)).isEmpty)
        #expect(due(&commits, after: .seconds(1)) == [partition: 0])
    }

    @Test func newRequestDoesNotWaitForEarlierResponse() {
        var commits = LowerCommits()
        commits.request(partition, from: 3)
        _ = due(&commits)
        commits.request(partition, from: 0)
        #expect(due(&commits) == [partition: 0])
    }

    @Test func revokedPartitionIsCancelled() {
        var commits = LowerCommits()
        commits.request(partition, from: 0)
        commits.request(other, from: 5)
        commits.cancel(partition)
        #expect(due(&commits) == [other: 5])
    }
}
