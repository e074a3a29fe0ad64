import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// Keys that wait for a back end whose circuit is open.
@Suite(.ownThreads) struct OpenCircuitTests {
    private typealias TestCall = WorkSchedulerTests.TestCall

    private let now = ContinuousClock.now

    private func key(_ number: UInt8) throws -> WorkKey {
        WorkKey(
            environment: EnvironmentID(rawValue: 1),
            subject: EventSubject(
                realm: try .user("p\(number)@example.com"), kind: .timeEntry,
                id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number))))
    }

    /// Runs the engine until it requests decisions.
    private func runToDecision(_ work: inout WorkScheduler<String, TestCall>) -> Int {
        // A cycle ends without an action.
        for _ in 0..<2 {
            while let action = work.next(now: now) {
                if case .decide(let items, _) = action { return items.count }
            }
        }
        return 0
    }

    /// The operator sees the cause of the failure and the time of the next probe.
    @Test func withheldKeyHasCauseAndNextAttempt() throws {
        var limits = WorkerLimits()
        limits.circuit = CircuitBreaker(failuresMax: 1, waitMin: .seconds(2), waitMax: .seconds(10))
        var work = WorkScheduler<String, TestCall>(limits, now: now)
        let partition = TopicPartition(topic: "entry.events", partition: 0)
        let call = Disposition<TestCall>.call(TestCall(name: "create"), startBefore: now + .seconds(600))
        work.received("a", of: try key(1), at: 1, isEdit: true, from: partition, now: now)
        #expect(runToDecision(&work) == 1)
        work.committed(work.plan([call], now: now), missed: [], now: now)
        #expect(runToDecision(&work) == 0)
        let started = StartedCall(
            key: try key(1), call: TestCall(name: "create"), startBefore: now + .seconds(600), startedAt: now)
        _ = work.ended(started, answer: "status 503", now: now)
        #expect(runToDecision(&work) == 1)
        let failure = Disposition<TestCall>.deferred(
            reason: "status 503", after: .seconds(60), cause: .backendUnavailable)
        work.committed(work.plan([failure], now: now), missed: [], now: now)
        work.received("b", of: try key(2), at: 1, isEdit: true, from: partition, now: now)
        #expect(runToDecision(&work) == 1)
        let plan = work.plan([call], now: now + .milliseconds(500))
        let deferral = try #require(plan.deferrals.first)
        #expect(deferral.isCircuit && deferral.reason == "the back end is unavailable: status 503")
        #expect(deferral.wait == .milliseconds(1_250))
    }
}
