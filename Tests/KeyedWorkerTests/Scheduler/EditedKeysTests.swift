import Essentials
import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// Whether an item may contain an edit, or only writes of services.
@Suite(.ownThreads) struct EditedKeysTests {
    struct TestCall: ScheduledCall, Equatable {
        let kind = CallKind.write
        var resultWhenSkipped: String? { nil }
    }

    typealias Scheduler = WorkScheduler<String, TestCall>

    private let acme = EnvironmentID(rawValue: 1)
    private let other = EnvironmentID(rawValue: 2)
    private let now = ContinuousClock.now
    private let partition = TopicPartition(topic: "task.events", partition: 0)
    private let id = UUID()
    private let request = DueRequest(countMax: 1, roomMax: 1, exceptions: [:], expedited: [:])

    private func key(in environment: EnvironmentID? = nil) -> WorkKey {
        WorkKey(environment: environment ?? acme, subject: EventSubject(realm: .manager, kind: .fieldTask, id: id))
    }

    /// A scheduler that has scanned for deferred keys.
    private func scheduler(deferredIn environments: Set<EnvironmentID> = []) -> Scheduler {
        var work = Scheduler(WorkerLimits(), now: now)
        work.due([], of: request, deferredIn: environments)
        return work
    }

    private func receive(_ work: inout Scheduler, at position: Int64, isEdit: Bool, of key: WorkKey? = nil) {
        work.received("\(position)", of: key ?? self.key(), at: position, isEdit: isEdit, from: partition, now: now)
    }

    /// The next items: whether each may contain an edit.
    private func next(_ work: inout Scheduler) -> [Bool] {
        for _ in 1...2 {
            while let action = work.next(now: now) {
                if case .decide(let items, _) = action { return items.map(\.item.isEdit) }
            }
        }
        return []
    }

    private func decided(_ work: inout Scheduler, _ next: Disposition<TestCall> = .finished, isConflicted: Bool = false)
    {
        work.committed(work.plan([next], now: now), missed: isConflicted ? [0] : [], now: now)
    }

    @Test func eventDeterminesWhetherKeyIsEdited() {
        var work = scheduler()
        for isEdit in [true, false, true] {
            receive(&work, at: 1, isEdit: isEdit)
            #expect(next(&work) == [isEdit])
            decided(&work)
        }
    }

    /// Events that arrive while their key is in flight are decided together, and are an edit if one of them is.
    @Test(arguments: [[false], [true], [false, true, false], [true, false], [false, false]])
    func eventsDuringFlightAreAnEditIfOneIs(events: [Bool]) {
        for isFirstEdit in [true, false] {
            var work = scheduler()
            receive(&work, at: 1, isEdit: isFirstEdit)
            #expect(next(&work) == [isFirstEdit])
            for (index, isEdit) in events.enumerated() { receive(&work, at: Int64(2 + index), isEdit: isEdit) }
            decided(&work)
            #expect(next(&work) == [events.contains(true)])
            // The next one is judged by itself.
            receive(&work, at: 9, isEdit: false)
            decided(&work)
            #expect(next(&work) == [false])
        }
    }

    @Test func retriedItemKeepsWhetherItIsAnEdit() {
        for isEdit in [true, false] {
            var work = scheduler()
            receive(&work, at: 1, isEdit: isEdit)
            #expect(next(&work) == [isEdit])
            decided(&work, isConflicted: true)
            #expect(next(&work) == [isEdit])
            work.failed("PostgreSQL is unavailable", now: now, random: 0.5)
            #expect(next(&work) == [isEdit])
        }
    }

    @Test func unknownOriginIsAnEdit() {
        // Reprocessing, the result of a call, and a deferred key.
        var work = scheduler()
        receive(&work, at: 1, isEdit: false)
        #expect(next(&work) == [false])
        decided(&work, .reprocess)
        #expect(next(&work) == [true])
        decided(&work, .call(TestCall(), startBefore: now + .seconds(60)))
        #expect(next(&work) == [])
        _ = work.ended(
            StartedCall(key: key(), call: TestCall(), startBefore: now + .seconds(60), startedAt: now), answer: "done",
            now: now)
        #expect(next(&work) == [true])
        decided(&work)
        let due = DeferredKeys.Due(environment: acme, subject: key().subject, partition: partition, attemptCount: 1)
        work.due([due], of: request, deferredIn: [acme])
        #expect(next(&work) == [true])
    }

    /// A finished key is no longer deferred: an event of a service must not finish a deferred edit.
    @Test func unknownKeysMayBeDeferredWhileTheirEnvironmentHasDeferredKeys() {
        func possiblyDeferred(_ work: inout Scheduler, of key: WorkKey? = nil, isEdit: Bool = false) -> Int {
            receive(&work, at: 1, isEdit: isEdit, of: key)
            #expect(next(&work) == [isEdit])
            return work.possiblyDeferred.count
        }
        var work = Scheduler(WorkerLimits(), now: now)
        #expect(possiblyDeferred(&work) == 1, "no scan yet")
        decided(&work)

        work = scheduler(deferredIn: [acme])
        #expect(possiblyDeferred(&work) == 1)
        decided(&work)
        #expect(possiblyDeferred(&work, isEdit: true) == 0)
        decided(&work)
        #expect(possiblyDeferred(&work, of: key(in: other)) == 0)
        decided(&work, .deferred(reason: "wait", after: .seconds(60), cause: .planned))
        #expect(possiblyDeferred(&work, of: key(in: other)) == 1, "it was deferred meanwhile")
        decided(&work)
        work.due([], of: request, deferredIn: [])
        #expect(possiblyDeferred(&work, of: key(in: other)) == 0)
    }

    /// An unedited key may be finished without loading it, so only an edit ends its deferral.
    @Test func onlyEditsReleaseDeferredKeys() {
        for isDeferred in [true, false] {
            var work = scheduler(deferredIn: [acme])
            receive(&work, at: 1, isEdit: false)
            #expect(next(&work) == [false])
            let items = work.decideAsEdits(isDeferred ? [key().subject.description] : [])
            #expect(items.map(\.item.isEdit) == [isDeferred])
            #expect(work.plan([.finished], now: now).released.count == (isDeferred ? 1 : 0))
        }
    }
}
