import Essentials
import FoundationEssentials
import Kafka
import Model
import Testing

@testable import KeyedWorker

/// Whether what is to be decided may have been edited, or was written by services only.
@Suite struct EditedKeysTests {
    struct TestCall: ScheduledCall, Equatable {
        let kind = CallKind.write
        var unmade: String? { nil }
    }

    typealias Scheduler = WorkScheduler<String, TestCall>

    private let acme = EnvironmentID(rawValue: 1)
    private let other = EnvironmentID(rawValue: 2)
    private let now = ContinuousClock.now
    private let place = TopicPartition(topic: "task.events", partition: 0)
    private let id = UUID()
    private let request = DueRequest(countMax: 1, roomMax: 1, exceptions: [:], hastened: [:])

    private func key(in environment: EnvironmentID? = nil) -> WorkKey {
        WorkKey(environment: environment ?? acme, subject: EventSubject(realm: .manager, kind: .fieldTask, id: id))
    }

    /// One that has looked for parked keys.
    private func scheduler(parkedIn environments: Set<EnvironmentID> = []) -> Scheduler {
        var work = Scheduler(WorkerLimits(), now: now)
        work.due([], of: request, parkedIn: environments)
        return work
    }

    private func hear(_ work: inout Scheduler, at position: Int64, isEdit: Bool, of key: WorkKey? = nil) {
        work.received("\(position)", of: key ?? self.key(), at: position, isEdit: isEdit, from: place, now: now)
    }

    /// What is decided next: whether each item may be edited.
    private func next(_ work: inout Scheduler) -> [Bool] {
        for _ in 1...2 {
            while let action = work.next(now: now) {
                if case .decide(let items, _) = action { return items.map(\.item.isEdit) }
            }
        }
        return []
    }

    private func decided(_ work: inout Scheduler, _ next: Disposition<TestCall> = .finished, isMissed: Bool = false) {
        work.committed(work.plan([next], now: now), missed: isMissed ? [0] : [], now: now)
    }

    @Test func anEventSaysIt() {
        var work = scheduler()
        for isEdit in [true, false, true] {
            hear(&work, at: 1, isEdit: isEdit)
            #expect(next(&work) == [isEdit])
            decided(&work)
        }
    }

    /// Events that come while their key is in flight are decided together, and are an edit if one of them is.
    @Test(arguments: [[false], [true], [false, true, false], [true, false], [false, false]])
    func whatComesMeanwhileIsAnEditIfOneOfItIs(events: [Bool]) {
        for isFirstEdit in [true, false] {
            var work = scheduler()
            hear(&work, at: 1, isEdit: isFirstEdit)
            #expect(next(&work) == [isFirstEdit])
            for (index, isEdit) in events.enumerated() { hear(&work, at: Int64(2 + index), isEdit: isEdit) }
            decided(&work)
            #expect(next(&work) == [events.contains(true)])
            // And that is over with it.
            hear(&work, at: 9, isEdit: false)
            decided(&work)
            #expect(next(&work) == [false])
        }
    }

    @Test func whatMissedOrFailedIsWhatItWas() {
        for isEdit in [true, false] {
            var work = scheduler()
            hear(&work, at: 1, isEdit: isEdit)
            #expect(next(&work) == [isEdit])
            decided(&work, isMissed: true)
            #expect(next(&work) == [isEdit])
            work.failed("PostgreSQL is away", now: now, random: 0.5)
            #expect(next(&work) == [isEdit])
        }
    }

    @Test func whatIsNotKnownIsAnEdit() {
        // Decided once more, the answer to a call, and a key that was parked.
        var work = scheduler()
        hear(&work, at: 1, isEdit: false)
        #expect(next(&work) == [false])
        decided(&work, .again)
        #expect(next(&work) == [true])
        decided(&work, .call(TestCall(), startBefore: now + .seconds(60)))
        #expect(next(&work) == [])
        _ = work.ended(
            StartedCall(key: key(), call: TestCall(), startBefore: now + .seconds(60), begunAt: now), answer: "done",
            now: now)
        #expect(next(&work) == [true])
        decided(&work)
        let due = ParkedKeys.Due(environment: acme, subject: key().subject, partition: place, attemptCount: 1)
        work.due([due], of: request, parkedIn: [acme])
        #expect(next(&work) == [true])
    }

    /// A finished key is parked no longer: an event that is no edit must not end what a parked edit waits for.
    @Test func whereKeysAreParkedAnEventMayBeOfOne() {
        var work = Scheduler(WorkerLimits(), now: now)
        hear(&work, at: 1, isEdit: false)
        #expect(next(&work) == [true], "nobody has looked yet")
        decided(&work)

        work = scheduler(parkedIn: [acme])
        hear(&work, at: 1, isEdit: false)
        #expect(next(&work) == [true])
        decided(&work)
        hear(&work, at: 1, isEdit: false, of: key(in: other))
        #expect(next(&work) == [false])
        decided(&work, .park(reason: "wait", after: .seconds(60), cause: .planned))
        hear(&work, at: 2, isEdit: false, of: key(in: other))
        #expect(next(&work) == [true], "it was parked meanwhile")
        decided(&work)
        work.due([], of: request, parkedIn: [])
        hear(&work, at: 3, isEdit: false, of: key(in: other))
        #expect(next(&work) == [false])
    }
}
