import Essentials
import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// A key keeps the trace of its newest event through calls and deferrals.
@Suite(.ownThreads) struct TraceTests {
    private typealias Scheduler = WorkScheduler<String, EditedKeysTests.TestCall>

    private let now = ContinuousClock.now
    private let partition = TopicPartition(topic: "task.events", partition: 0)
    private let key = WorkKey(
        environment: EnvironmentID(rawValue: 1), subject: EventSubject(realm: .manager, kind: .fieldTask, id: UUID()))
    private let one = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    private let other = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

    private func decided(_ work: inout Scheduler) -> TraceContext? {
        for _ in 1...2 {
            while let action = work.next(now: now) {
                if case .decide(let items, _) = action { return items[0].item.trace }
            }
        }
        return nil
    }

    @Test func resultIsDecidedInTheTraceOfItsCall() throws {
        let (one, other) = (try #require(one), try #require(other))
        var work = Scheduler(WorkerLimits(), now: now)
        work.received("1", of: key, at: 1, isEdit: true, from: partition, trace: one, now: now)
        #expect(decided(&work) == one)
        let call = EditedKeysTests.TestCall()
        work.committed(work.plan([.call(call, startBefore: now + .seconds(60))], now: now), missed: [], now: now)
        #expect(decided(&work) == nil)
        // A newer event arrives during the call: it is decided after the result, in its own trace.
        work.received("2", of: key, at: 2, isEdit: true, from: partition, trace: other, now: now)
        _ = work.ended(
            StartedCall(key: key, call: call, startBefore: now + .seconds(60), startedAt: now), answer: "done", now: now
        )
        #expect(decided(&work) == one)
        work.committed(work.plan([.finished], now: now), missed: [], now: now)
        #expect(decided(&work) == other)
    }

    @Test func queuedItemIsDecidedInTheTraceOfItsNewestEvent() throws {
        let (one, other) = (try #require(one), try #require(other))
        var work = Scheduler(WorkerLimits(), now: now)
        work.received("1", of: key, at: 1, isEdit: true, from: partition, trace: one, now: now)
        // The decision includes the second change.
        work.received("2", of: key, at: 2, isEdit: true, from: partition, trace: other, now: now)
        #expect(decided(&work) == other)
        work.committed(work.plan([.finished], now: now), missed: [], positions: [0: 2], now: now)
        #expect(decided(&work) == other)
    }

    @Test func deferredKeyKeepsItsTrace() throws {
        let one = try #require(one)
        var work = Scheduler(WorkerLimits(), now: now)
        work.received("1", of: key, at: 1, isEdit: true, from: partition, trace: one, now: now)
        #expect(decided(&work) == one)
        let plan = work.plan([.deferred(reason: "wait", after: .seconds(1), cause: .planned)], now: now)
        #expect(plan.deferrals.map(\.trace) == [one])
        work.committed(plan, missed: [], now: now)
        let due = DeferredKeys.Due(
            environment: key.environment, subject: key.subject, partition: partition, attemptCount: 1, trace: one)
        work.due(
            [due], of: DueRequest(countMax: 1, roomMax: 1, exceptions: [:], expedited: [:]),
            deferredIn: [key.environment])
        #expect(decided(&work) == one)
    }

    @Test(arguments: [
        "", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
    ])
    func invalidTraceContextIsNil(text: String) { #expect(TraceContext(text) == nil) }

    @Test func traceContextRoundTrips() throws {
        let one = try #require(one)
        #expect(one.text == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        #expect(one.child(1).text == "00-0af7651916cd43dd8448eb211c80319c-0000000000000001-01")
        #expect(one.child(0) == one && one.isSampled && one.traceID == "0af7651916cd43dd8448eb211c80319c")
    }
}
