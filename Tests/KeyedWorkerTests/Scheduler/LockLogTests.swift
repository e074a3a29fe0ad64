import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// A lock of another transaction is normal while many services write, and a problem if it lasts.
@Suite(.ownThreads) struct LockLogTests {
    private struct TestCall: ScheduledCall {
        let kind = CallKind.write
        var resultWhenSkipped: String?
    }

    private typealias Scheduler = WorkScheduler<String, TestCall>

    private let acme = EnvironmentID(rawValue: 1)
    private let id = UUID()
    private let start = ContinuousClock.now
    private let partition = TopicPartition(topic: "entry.events", partition: 0)

    /// Receives a message, and decides it.
    ///
    /// - Returns: The logged events.
    private func decide(_ work: inout Scheduler, at second: Int, isLocked: Bool) throws -> [SchedulerLogEvent] {
        let now = start + .seconds(second)
        let subject = EventSubject(realm: try .user("p@example.com"), kind: .timeEntry, id: id)
        work.received(
            "\(second)", of: WorkKey(environment: acme, subject: subject), at: Int64(second + 1), isEdit: true,
            from: partition, now: now)
        var events: [SchedulerLogEvent] = []
        for _ in 0..<3 {
            while let action = work.next(now: now) {
                switch action {
                case .log(let event): events.append(event)
                case .decide where isLocked: work.locked("lock timeout", now: now, random: 0.5)
                case .decide(let items, _):
                    work.committed(work.plan(items.map { _ in .finished }, now: now), missed: [], now: now)
                case .deferKeys: work.deferred(now: now)
                case .finish, .start, .take, .takeDue, .wait: break
                }
            }
        }
        return events
    }

    @Test func onlyLastingLockIsAProblem() throws {
        var work = Scheduler(WorkerLimits(), now: start)
        let short = SchedulerLogEvent.locked(acme, reason: "lock timeout", isLong: false)
        let long = SchedulerLogEvent.locked(acme, reason: "lock timeout", isLong: true)
        #expect(try decide(&work, at: 0, isLocked: true) == [short])
        #expect(try decide(&work, at: 1, isLocked: false) == [.unlocked(acme)])
        #expect(try decide(&work, at: 100, isLocked: true) == [short])
        #expect(try decide(&work, at: 105, isLocked: true) == [])
        #expect(try decide(&work, at: 111, isLocked: true) == [long])
        #expect(try decide(&work, at: 115, isLocked: true) == [])
        #expect(try decide(&work, at: 121, isLocked: false) == [.unlocked(acme)])
        // Two locks with a long time without work between them.
        #expect(try decide(&work, at: 200, isLocked: true) == [short])
        #expect(try decide(&work, at: 230, isLocked: true) == [short])
    }
}
