import TestSupport
import Testing

@testable import Kafka

/// When something is committed that is below what the group has committed.
struct LowerCommitsTests {
    private let place = TopicPartition(topic: "t", partition: 0)
    private let other = TopicPartition(topic: "t", partition: 1)
    private let start = ContinuousClock.now

    private func due(
        _ commits: inout LowerCommits, after wait: Duration = .zero, isSteady: Bool = true, finished: Int64? = nil
    ) -> [TopicPartition: Int64] {
        commits.due(now: start + wait, isSteady: isSteady) { _ in finished }
    }

    private func answer(_ commits: inout LowerCommits, _ offset: Int64, isDone: Bool, after wait: Duration = .zero) {
        commits.answered([(place, offset, isDone)], now: start + wait, random: 0.999)
    }

    @Test func whileTheGroupSharesOutPartitionsNothingIsSent() {
        var commits = LowerCommits()
        commits.want(place, from: 3)
        #expect(due(&commits, isSteady: false).isEmpty)
        #expect(due(&commits) == [place: 3])
        #expect(due(&commits, after: .seconds(1)).isEmpty, "its answer is waited for")
        answer(&commits, 3, isDone: true)
        #expect(commits.takeCommitted() == [place])
        #expect(commits.takeCommitted().isEmpty)
        #expect(due(&commits, after: .seconds(60)).isEmpty)
    }

    @Test func whatIsFinishedMeanwhileIsCommittedWithIt() {
        var commits = LowerCommits()
        commits.want(place, from: 3)
        #expect(due(&commits, finished: 7) == [place: 7])
    }

    @Test func whatFailedIsTriedAgainLaterAndLater() {
        var commits = LowerCommits()
        commits.want(place, from: 0)
        var (now, waits) = (Duration.zero, [Duration]())
        for _ in 0..<4 {
            #expect(due(&commits, after: now) == [place: 0])
            answer(&commits, 0, isDone: false, after: now)
            let failedAt = now
            while due(&commits, after: now, isSteady: false).isEmpty, now - failedAt < .seconds(60) {
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

    @Test func anAnswerThatNeverComesIsNotWaitedForForever() {
        var commits = LowerCommits()
        commits.want(place, from: 0)
        _ = due(&commits)
        #expect(due(&commits, after: .seconds(14)).isEmpty)
        #expect(due(&commits, after: .seconds(15)) == [place: 0])
    }

    @Test func whatLibrdkafkaCommitsByItselfIsNoAnswer() {
        var commits = LowerCommits()
        commits.want(place, from: 0)
        _ = due(&commits)
        answer(&commits, 1_000, isDone: true)
        #expect(commits.takeCommitted().isEmpty)
    }

    @Test func whatLibrdkafkaCommitsByItselfDoesNotHastenTheNext() {
        var commits = LowerCommits()
        commits.want(place, from: 0)
        _ = due(&commits)
        answer(&commits, 0, isDone: false)
        commits.answered([(other, 70, true)], now: start, random: 0)
        #expect(due(&commits, after: .milliseconds(900)).isEmpty)
        #expect(due(&commits, after: .seconds(1)) == [place: 0])
    }

    @Test func aNewBeginningDoesNotWaitForTheAnswerOfTheOldOne() {
        var commits = LowerCommits()
        commits.want(place, from: 3)
        _ = due(&commits)
        commits.want(place, from: 0)
        #expect(due(&commits) == [place: 0])
    }

    @Test func aPartitionThatIsTakenAwayIsForgotten() {
        var commits = LowerCommits()
        commits.want(place, from: 0)
        commits.want(other, from: 5)
        commits.forget(place)
        #expect(due(&commits) == [other: 5])
    }
}
