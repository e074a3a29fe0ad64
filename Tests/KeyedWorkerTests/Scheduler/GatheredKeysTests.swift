import FoundationEssentials
import Kafka
import Model
import Testing

@testable import KeyedWorker

/// How many of the keys that gathered a worker takes at a time.
@Suite struct GatheredKeysTests {
    private typealias Scheduler = WorkScheduler<String, WorkSchedulerTests.TestCall>

    private let now = ContinuousClock.now
    private let place = TopicPartition(topic: "task.events", partition: 0)

    /// Ten thousand of them are not in the way of one message. Where calls are made, these set the pace.
    @Test func fewAreTakenAtATimeWhileMessagesCome() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        work.assigned([place])
        #expect(taken(&work, after: 0) == 512)
        try hear(&work)
        #expect(taken(&work, after: 300) == 128)
        decided(&work, .finished)
        var quiet = work
        #expect(taken(&quiet, after: 2_000) == 512)
        try hear(&work)
        #expect(taken(&work, after: 400) == nil)
        let call = WorkSchedulerTests.TestCall(name: "create")
        decided(&work, .call(call, startBefore: now + .seconds(600)))
        #expect((taken(&work, after: 600) ?? 0) > 128)
    }

    /// The most of an environment's that are asked for until something is decided, or nothing is left to do.
    private func taken(_ work: inout Scheduler, after milliseconds: Int) -> Int? {
        var countMax: Int?
        // A round that was begun is ended first.
        for _ in 0..<2 {
            while let action = work.next(now: now + .milliseconds(milliseconds)) {
                if case .takeDue(let request) = action { countMax = request.countMax }
                if case .decide = action { return countMax }
            }
        }
        return countMax
    }

    private func hear(_ work: inout Scheduler) throws {
        let subject = EventSubject(realm: .manager, kind: .fieldTask, id: UUID())
        let key = WorkKey(environment: EnvironmentID(rawValue: 1), subject: subject)
        work.received("\(subject)", of: key, at: 1, isEdit: true, from: place, now: now)
    }

    private func decided(_ work: inout Scheduler, _ disposition: Disposition<WorkSchedulerTests.TestCall>) {
        work.committed(work.plan([disposition], now: now), missed: [], now: now)
    }
}
