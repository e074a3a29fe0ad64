import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// Number of backlogged keys that a worker takes at a time.
@Suite(.ownThreads) struct BacklogTests {
    private typealias Scheduler = WorkScheduler<String, WorkSchedulerTests.TestCall>

    private let now = ContinuousClock.now
    private let partition = TopicPartition(topic: "task.events", partition: 0)

    /// Ten thousand of them do not delay one message. If calls are made, they limit the rate.
    @Test func fewDueKeysAreTakenWhileMessagesArrive() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        work.assigned([partition])
        #expect(taken(&work, after: 0) == 512)
        try receive(&work)
        #expect(taken(&work, after: 300) == 128)
        decided(&work, .finished)
        var quiet = work
        #expect(taken(&quiet, after: 2_000) == 512)
        try receive(&work)
        #expect(taken(&work, after: 400) == nil)
        let call = WorkSchedulerTests.TestCall(name: "create")
        decided(&work, .call(call, startBefore: now + .seconds(600)))
        #expect((taken(&work, after: 600) ?? 0) > 128)
    }

    /// The maximum per environment that is requested before the next decision or the end of the cycle.
    private func taken(_ work: inout Scheduler, after milliseconds: Int) -> Int? {
        var countMax: Int?
        // First ends a cycle that was started.
        for _ in 0..<2 {
            while let action = work.next(now: now + .milliseconds(milliseconds)) {
                if case .takeDue(let request) = action { countMax = request.countMax }
                if case .decide = action { return countMax }
            }
        }
        return countMax
    }

    private func receive(_ work: inout Scheduler) throws {
        let subject = EventSubject(realm: .manager, kind: .fieldTask, id: UUID())
        let key = WorkKey(environment: EnvironmentID(rawValue: 1), subject: subject)
        work.received("\(subject)", of: key, at: 1, isEdit: true, from: partition, now: now)
    }

    private func decided(_ work: inout Scheduler, _ disposition: Disposition<WorkSchedulerTests.TestCall>) {
        work.committed(work.plan([disposition], now: now), missed: [], now: now)
    }
}
