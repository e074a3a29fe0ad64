import Essentials
import FoundationEssentials
import Model
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

@Suite(.ownThreads) struct SchedulerTakeoverTests {
    /// A frozen scheduler sends nothing: its session is terminated, which releases its lock.
    @Test func lockOfFrozenSchedulerIsTakenOver() throws {
        var acme = try PollHandlerTests.environment()
        var frozen = try PollHandlerTests.scheduler(acme)
        var other = try PollHandlerTests.scheduler(acme)
        let now = Timestamp(millisecondsSinceEpoch: 0)
        let isFirst = try frozen.step(now: now)
        let isOtherToo = try other.step(now: now)
        #expect(isFirst && !isOtherToo)
        let deadline = ContinuousClock.now + .seconds(120)
        while try !other.step(now: now) {
            try #require(ContinuousClock.now < deadline, "the lock is kept")
            try acme.connection.run("SELECT pg_sleep(0.05)")
        }
        // When it is resumed, it does nothing before it detects this.
        #expect(throws: PostgresError.self) { try frozen.step(now: now) }
        #expect(try !frozen.step(now: now))
    }
}
