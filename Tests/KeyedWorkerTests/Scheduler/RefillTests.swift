import FoundationEssentials
import Kafka
import Model
import Testing

@testable import KeyedWorker

/// Keys that waited for room come back while the back end still has something to do.
@Suite struct RefillTests {
    private struct TestCall: ScheduledCall {
        let kind = CallKind.write
        var unmade: String?
    }

    private typealias Scheduler = WorkScheduler<String, TestCall>

    private let acme = EnvironmentID(rawValue: 1)
    private let now = ContinuousClock.now
    private let place = TopicPartition(topic: "entry.events", partition: 0)

    /// Does all of a round.
    ///
    /// - Returns: What was asked for of keys that wait for room.
    private func round(_ work: inout Scheduler, _ running: inout [StartedCall<TestCall>]) -> [Int] {
        var asked: [Int] = []
        while let action = work.next(now: now) {
            switch action {
            case .start(let calls): running += calls
            case .decide(let items, _):
                let dispositions = items.map { item -> Disposition<TestCall> in
                    if case .answer = item.item.origin { return .finished }
                    return .call(TestCall(), startBefore: now + .seconds(600))
                }
                work.committed(work.plan(dispositions, now: now), missed: [], now: now)
            case .takeDue(let request):
                asked += request.hastened.values
                work.due([], of: request, parkedIn: [acme])
            case .finish, .note, .park, .take, .wait: break
            }
        }
        return asked
    }

    @Test func keysThatWaitForRoomComeBackBeforePlacesAreFree() throws {
        var limits = WorkerLimits()
        (limits.inFlightMax, limits.heldMax) = (4, 80)
        var work = Scheduler(limits, now: now)
        work.assigned([place])
        for number in 1...60 {
            let subject = EventSubject(realm: try .user("p\(number)@example.com"), kind: .timeEntry, id: UUID())
            work.received(
                "\(number)", of: WorkKey(environment: acme, subject: subject), at: 1, isEdit: true, from: place,
                now: now)
        }
        var running: [StartedCall<TestCall>] = []
        var asked = round(&work, &running)
        #expect(work.calls.count == 40 && running.count == 4 && asked.isEmpty, "the others wait for room")
        while asked.isEmpty, !running.isEmpty {
            if let next = work.ended(running.removeFirst(), answer: "done", now: now) { running.append(next) }
            asked = round(&work, &running)
        }
        // As many as may be under way are, and nearly as many wait: they are made meanwhile.
        #expect(work.calls.count == 7 && running.count == 4 && asked == [13])
        // None of them found room, for a reason of their own: they are not asked for again and again.
        asked = []
        while work.calls.count > 5 {
            if let next = work.ended(running.removeFirst(), answer: "done", now: now) { running.append(next) }
            asked += round(&work, &running)
        }
        #expect(asked.isEmpty)
    }
}
