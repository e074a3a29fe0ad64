import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// Keys without a free slot become due while the back end is still busy.
@Suite(.ownThreads) struct RefillTests {
    private struct TestCall: ScheduledCall {
        let kind = CallKind.write
        var resultWhenSkipped: String?
    }

    private typealias Scheduler = WorkScheduler<String, TestCall>

    private let acme = EnvironmentID(rawValue: 1)
    private let now = ContinuousClock.now
    private let partition = TopicPartition(topic: "entry.events", partition: 0)

    /// Runs a cycle.
    ///
    /// - Returns: The requested numbers of keys that wait for a free slot.
    private func runCycle(_ work: inout Scheduler, _ running: inout [StartedCall<TestCall>]) -> [Int] {
        var requested: [Int] = []
        while let action = work.next(now: now) {
            switch action {
            case .start(let calls): running += calls
            case .decide(let items, _):
                let dispositions = items.map { item -> Disposition<TestCall> in
                    if case .result = item.item.origin { return .finished }
                    return .call(TestCall(), startBefore: now + .seconds(600))
                }
                work.committed(work.plan(dispositions, now: now), missed: [], now: now)
            case .takeDue(let request):
                requested += request.expedited.values
                work.due([], of: request, deferredIn: [acme])
            case .finish, .log, .deferKeys, .take, .wait: break
            }
        }
        return requested
    }

    @Test func deferredKeysAreRetriedBeforeSlotsAreFree() throws {
        var limits = WorkerLimits()
        (limits.inFlightMax, limits.keysInFlightMax) = (4, 80)
        var work = Scheduler(limits, now: now)
        work.assigned([partition])
        for number in 1...60 {
            let subject = EventSubject(realm: try .user("p\(number)@example.com"), kind: .timeEntry, id: UUID())
            work.received(
                "\(number)", of: WorkKey(environment: acme, subject: subject), at: 1, isEdit: true, from: partition,
                now: now)
        }
        var running: [StartedCall<TestCall>] = []
        var requested = runCycle(&work, &running)
        #expect(work.calls.count == 40 && running.count == 4 && requested.isEmpty, "the others wait for slots")
        while requested.isEmpty, !running.isEmpty {
            if let next = work.ended(running.removeFirst(), answer: "done", now: now) { running.append(next) }
            requested = runCycle(&work, &running)
        }
        // All slots are used, and nearly as many calls wait: they are made meanwhile.
        #expect(work.calls.count == 7 && running.count == 4 && requested == [13])
        // None of them found a free slot, for their own reasons: they are not requested repeatedly.
        requested = []
        while work.calls.count > 5 {
            if let next = work.ended(running.removeFirst(), answer: "done", now: now) { running.append(next) }
            requested += runCycle(&work, &running)
        }
        #expect(requested.isEmpty)
    }
}
