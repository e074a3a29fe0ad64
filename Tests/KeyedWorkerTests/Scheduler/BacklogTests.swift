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
        #expect(taken(&work, after: 300) == 16)
        decided(&work, .finished)
        var quiet = work
        #expect(taken(&quiet, after: 2_000) == 512)
        try receive(&work)
        #expect(taken(&work, after: 400) == nil)
        let call = WorkSchedulerTests.TestCall(name: "create")
        decided(&work, .call(call, startBefore: now + .seconds(600)))
        #expect((taken(&work, after: 600) ?? 0) > 16)
    }

    /// A service's own writes return as events. Decisions that lead to calls are limited by these.
    @Test func onlyEditsOfServicesWithoutCallsLimitDueKeys() throws {
        let call = WorkSchedulerTests.TestCall(name: "create")
        let called = Disposition.call(call, startBefore: now + .seconds(600))
        let cases: [(isEdit: Bool, disposition: Disposition<WorkSchedulerTests.TestCall>, count: ClosedRange<Int>)] = [
            (true, .finished, 16...16), (false, .finished, 129...2_048), (true, called, 129...2_048),
        ]
        for (isEdit, disposition, count) in cases {
            var work = Scheduler(limits, now: now)
            work.assigned([partition])
            #expect(taken(&work, after: 0) != nil)
            try receive(&work, isEdit: isEdit)
            #expect(try decideDueKeys(&work, after: 300) == 1)
            finish(&work, 1, disposition, after: 301)
            finish(&work, try decideDueKeys(&work, after: 301), .finished, after: 302)
            let dueCount = try decideDueKeys(&work, after: 600)
            #expect(count.contains(dueCount))
        }
    }

    /// All due keys that are taken are one decision.
    private var limits: WorkerLimits {
        var limits = WorkerLimits()
        limits.batchCountMax = limits.keysInFlightMax
        return limits
    }

    /// Takes as many due keys of an environment as the worker requests, up to the next decision.
    ///
    /// - Returns: The number of items of the decision.
    private func decideDueKeys(_ work: inout Scheduler, after milliseconds: Int) throws -> Int {
        let environment = EnvironmentID(rawValue: 2)
        for _ in 0..<2 {
            while let action = work.next(now: now + .milliseconds(milliseconds)) {
                if case .decide(let items, _) = action { return items.count }
                guard case .takeDue(let request) = action else { continue }
                let keys = (0..<request.countMax).map { _ in
                    DeferredKeys.Due(
                        environment: environment,
                        subject: EventSubject(realm: .manager, kind: .fieldTask, id: UUID()), partition: partition,
                        attemptCount: 0)
                }
                work.due(keys, of: request, deferredIn: [environment])
            }
        }
        return 0
    }

    private func finish(
        _ work: inout Scheduler, _ count: Int, _ disposition: Disposition<WorkSchedulerTests.TestCall>,
        after milliseconds: Int
    ) {
        let now = now + .milliseconds(milliseconds)
        let dispositions = Array(repeating: disposition, count: count)
        work.committed(work.plan(dispositions, now: now), missed: [], now: now)
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

    private func receive(_ work: inout Scheduler, isEdit: Bool = true) throws {
        let subject = EventSubject(realm: .manager, kind: .fieldTask, id: UUID())
        let key = WorkKey(environment: EnvironmentID(rawValue: 1), subject: subject)
        work.received("\(subject)", of: key, at: 1, isEdit: isEdit, from: partition, now: now)
    }

    private func decided(_ work: inout Scheduler, _ disposition: Disposition<WorkSchedulerTests.TestCall>) {
        work.committed(work.plan([disposition], now: now), missed: [], now: now)
    }
}
