import Essentials
import FoundationEssentials
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

/// A worker's engine, step by step: inputs and the resulting actions.
@Suite(.ownThreads) struct WorkSchedulerTests {
    struct TestCall: ScheduledCall, Equatable {
        let name: String
        var kind = CallKind.write
        var resultWhenSkipped: String?
    }

    typealias Scheduler = WorkScheduler<String, TestCall>

    let acme = EnvironmentID(rawValue: 1)
    let other = EnvironmentID(rawValue: 2)
    let now = ContinuousClock.now
    let partition = TopicPartition(topic: "entry.events", partition: 0)

    func key(_ number: UInt8, in environment: EnvironmentID? = nil) throws -> WorkKey {
        WorkKey(
            environment: environment ?? acme,
            subject: EventSubject(
                realm: try .user("p\(number)@example.com"), kind: .timeEntry,
                id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number))))
    }

    /// The actions of this cycle, as text, or of the next one if there are none. No messages are taken.
    func runCycle(_ work: inout Scheduler, at time: ContinuousClock.Instant? = nil) -> [String] {
        let actions = restOfCycle(&work, at: time)
        return actions.isEmpty ? restOfCycle(&work, at: time) : actions
    }

    private func restOfCycle(_ work: inout Scheduler, at time: ContinuousClock.Instant?) -> [String] {
        var actions: [String] = []
        while let action = work.next(now: time ?? now) {
            switch action {
            case .finish(let messages): actions.append("finish \(messages.sorted().joined(separator: " "))")
            case .start(let calls): actions.append("start \(calls.map(\.call.name).joined(separator: " "))")
            case .decide(let items, _):
                actions.append("decide \(items.map { String($0.item.subject.id.uuid.15) }.joined(separator: " "))")
                return actions
            case .deferKeys(let deferrals, _):
                actions.append("defer \(deferrals.map { String($0.subject.id.uuid.15) }.joined(separator: " "))")
                return actions
            case .log, .take, .takeDue, .wait: break
            }
        }
        return actions
    }

    func receive(_ work: inout Scheduler, _ message: String, _ key: WorkKey) {
        work.received(message, of: key, at: 1, isEdit: true, from: partition, now: now)
    }

    func decided(_ work: inout Scheduler, _ dispositions: [Disposition<TestCall>]) {
        work.committed(work.plan(dispositions, now: now), missed: [], now: now)
    }

    func call(_ name: String, resultWhenSkipped: String? = nil) -> Disposition<TestCall> {
        .call(TestCall(name: name, resultWhenSkipped: resultWhenSkipped), startBefore: now + .seconds(600))
    }

    func started(_ key: WorkKey, _ name: String) -> StartedCall<TestCall> {
        StartedCall(key: key, call: TestCall(name: name), startBefore: now + .seconds(600), startedAt: now)
    }

    @Test func keyHasOneTaskInFlight() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a1", a), ("a2", a), ("b1", b)] { receive(&work, message, key) }
        #expect(runCycle(&work) == ["decide 1 2"])
        decided(&work, [call("create"), .finished])
        #expect(runCycle(&work) == ["finish b1", "start create"])
        // a2 arrived with a1 and is decided after the call. a3 waits behind it.
        receive(&work, "a3", a)
        #expect(runCycle(&work) == [])
        _ = work.ended(started(a, "create"), answer: "created", now: now)
        #expect(runCycle(&work) == ["decide 1"])
        decided(&work, [.finished])
        #expect(runCycle(&work) == ["decide 1"])
        decided(&work, [.finished])
        #expect(runCycle(&work) == ["finish a1 a2 a3"])
        #expect(work.isIdle && work.heldMessageCount == 0)
    }

    @Test func conflictedAndFailedDecisionsAreRetried() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        for number in 1...3 as ClosedRange<UInt8> { receive(&work, "m\(number)", try key(number)) }
        #expect(runCycle(&work) == ["decide 1 2 3"])
        work.committed(work.plan([.finished, .finished, .finished], now: now), missed: [1], now: now)
        #expect(runCycle(&work) == ["finish m1 m3"])
        #expect(runCycle(&work) == ["decide 2"])
        work.failed("PostgreSQL is unavailable", now: now, random: 0.5)
        #expect(work.currentOutage(now: now)?.reason == "PostgreSQL is unavailable")
        let later = now + .seconds(1)
        #expect(work.currentOutage(now: later) == nil && runCycle(&work, at: later) == ["decide 2"])
    }

    @Test func environmentsAreQueuedRoundRobin() throws {
        var limits = WorkerLimits()
        limits.batchCountMax = 2
        var work = Scheduler(limits, now: now)
        for number in 1...5 as ClosedRange<UInt8> { receive(&work, "m\(number)", try key(number)) }
        receive(&work, "o", try key(9, in: other))
        var batches: [String] = []
        while let batch = runCycle(&work).last, batch.hasPrefix("decide") {
            batches.append(batch)
            decided(&work, batch.split(separator: " ").dropFirst().map { _ in .reprocess })
            if batches.count == 4 { break }
        }
        #expect(batches == ["decide 1 2", "decide 9", "decide 3 4", "decide 9"])
    }

    /// The batch is halved until the key whose row is rejected is alone.
    @Test func keyRejectedByPostgreSQLIsDeadLetteredAlone() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        for number in 1...4 as ClosedRange<UInt8> { receive(&work, "m\(number)", try key(number)) }
        #expect(runCycle(&work) == ["decide 1 2 3 4"])
        work.rejected("a bad row")
        #expect(runCycle(&work) == ["decide 1 2"])
        work.rejected("a bad row")
        #expect(runCycle(&work) == ["decide 1"])
        work.rejected("a bad row")
        guard case .deferKeys(let deferrals, _) = work.next(now: now) else {
            Issue.record("no key is deferred")
            return
        }
        #expect(deferrals.map(\.isDead) == [true] && deferrals.map(\.reason) == ["PostgreSQL rejected it: a bad row"])
        work.deferred(now: now)
        #expect(runCycle(&work).contains("decide 2"))
        decided(&work, [.finished])
        #expect(runCycle(&work).contains("decide 3 4"))
    }

    /// Calls in flight are awaited. Waiting calls are withdrawn: their keys are left to the next worker, or get a
    /// result.
    @Test func stoppingWorkerWithdrawsWaitingCalls() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        let keys = try (1...3 as ClosedRange<UInt8>).map { try key($0) }
        for (index, key) in keys.enumerated() { receive(&work, "m\(index + 1)", key) }
        #expect(runCycle(&work) == ["decide 1 2 3"])
        decided(&work, [call("1"), call("2"), call("3", resultWhenSkipped: "was not made")])
        #expect(runCycle(&work) == ["start 1"])
        work.stop()
        #expect(runCycle(&work) == ["decide 3"])
        decided(&work, [.deferred(reason: "later", after: .seconds(1), cause: .planned)])
        #expect(runCycle(&work) == ["finish m3"])
        #expect(!work.isIdle)
        _ = work.ended(started(keys[0], "1"), answer: "done", now: now)
        #expect(runCycle(&work) == ["decide 1"])
        decided(&work, [.finished])
        #expect(runCycle(&work) == ["finish m1"])
        // The second message is not finished: it is redelivered to the next worker.
        #expect(work.isIdle)
    }

    @Test func endedCallStartsTheNext() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a", a), ("b", b)] { receive(&work, message, key) }
        _ = runCycle(&work)
        decided(&work, [call("1"), call("2")])
        #expect(runCycle(&work) == ["start 1"])
        let next = work.ended(started(a, "1"), answer: "done", now: now)
        #expect(next?.key == b && next?.call.name == "2")
        #expect(work.calls.inFlightCount == 1)
    }

    /// Large results: no more of them are in memory than there are slots.
    @Test func resultsHoldSlotsUntilTheyAreTaken() throws {
        var limits = WorkerLimits()
        (limits.inFlightMax, limits.resultsHoldSlots) = (1, true)
        var work = Scheduler(limits, now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a", a), ("b", b)] { receive(&work, message, key) }
        _ = runCycle(&work)
        decided(&work, [call("1"), call("2")])
        #expect(runCycle(&work) == ["start 1"])
        #expect(work.ended(started(a, "1"), answer: "large", now: now) == nil)
        #expect(work.startCalls(now: now).isEmpty)
        // The next call is in flight while the result is decided.
        #expect(runCycle(&work) == ["start 2", "decide 1"])
    }

    /// A result that arrives between the start of a cycle and its decisions is decided in it. Its slot was never
    /// released, and a worker with as many of them made no further calls.
    @Test func resultDuringCycleReleasesItsSlot() throws {
        var limits = WorkerLimits()
        (limits.inFlightMax, limits.resultsHoldSlots) = (2, true)
        var work = Scheduler(limits, now: now)
        work.assigned([partition])
        let (a, b) = (try key(1), try key(2))
        receive(&work, "a", a)
        _ = runCycle(&work)
        decided(&work, [call("1")])
        _ = runCycle(&work)
        // The next cycle has released slots of queued results, and requests due keys.
        receive(&work, "b", b)
        while let action = work.next(now: now + .seconds(1)) { if case .takeDue = action { break } }
        #expect(work.ended(started(a, "1"), answer: "late", now: now) == nil)
        #expect(restOfCycle(&work, at: now + .seconds(1)) == ["decide 2 1"])
        #expect(work.calls.inFlightCount == 0)
    }

    /// A call whose deadline has passed is not made, and its key is reprocessed.
    @Test func expiredCallIsNotMade() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a", a), ("b", b)] { receive(&work, message, key) }
        _ = runCycle(&work)
        decided(&work, [call("1"), .call(TestCall(name: "2"), startBefore: now + .seconds(5))])
        #expect(runCycle(&work) == ["start 1"])
        let later = now + .seconds(6)
        #expect(work.ended(started(a, "1"), answer: "done", now: later) == nil)
        #expect(runCycle(&work, at: later) == ["decide 1 2"])
    }

    /// A worker receives the events of its own writes: they need no decision, and load nothing.
    @Test func coveredPositionsAreNotDecidedAgain() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let a = try key(1)
        work.received("a1", of: a, at: 7, isEdit: true, from: partition, now: now)
        #expect(runCycle(&work) == ["decide 1"])
        work.committed(work.plan([call("create")], now: now), missed: [], positions: [0: 8], now: now)
        #expect(runCycle(&work) == ["start create"])
        for (message, position) in [("a2", Int64(8)), ("a1 again", 7)] {
            work.received(message, of: a, at: position, isEdit: true, from: partition, now: now)
        }
        // They are finished with their key: until then its first message may be redelivered elsewhere.
        #expect(runCycle(&work) == [])
        work.received("a3", of: a, at: 9, isEdit: true, from: partition, now: now)
        _ = work.ended(started(a, "create"), answer: "created", now: now)
        #expect(runCycle(&work) == ["decide 1"])
        // Decided from 9 and written at 10; but a3 arrived before, and is decided.
        work.committed(work.plan([.finished], now: now), missed: [], positions: [0: 10], now: now)
        #expect(runCycle(&work) == ["decide 1"])
        work.committed(work.plan([.finished], now: now), missed: [], positions: [0: 10], now: now)
        #expect(runCycle(&work) == ["finish a1 a1 again a2 a3"])
        work.received("a2 again", of: a, at: 8, isEdit: true, from: partition, now: now)
        #expect(runCycle(&work) == ["finish a2 again"])
        // An operator may request reprocessing: the same event is reprocessed after a minute.
        work.received("a3 again", of: a, at: 9, isEdit: true, from: partition, now: now + .seconds(61))
        #expect(runCycle(&work, at: now + .seconds(61)) == ["decide 1"])
    }

    /// Without deferred keys no row is removed, and a decision without writes needs no transaction.
    @Test func rowsAreRemovedOnlyIfKeysAreDeferred() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let request = DueRequest(countMax: 1, roomMax: 1, exceptions: [:], expedited: [:])
        for (environments, isReleased) in [(Set<EnvironmentID>?.none, true), ([], false), ([acme], true)] {
            if let environments { work.due([], of: request, deferredIn: environments) }
            work.received("m", of: try key(1), at: isReleased ? 1 : 2, isEdit: true, from: partition, now: now)
            _ = runCycle(&work)
            let plan = work.plan([.finished], now: now)
            #expect(plan.released.isEmpty != isReleased)
            work.committed(plan, missed: [], now: now)
            _ = runCycle(&work)
        }
    }

    /// While calls wait for slots, results are written together, which delays no call. New messages are collected too,
    /// up to a limit.
    @Test func resultsAreBatchedWhileCallsWait() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 2
        var work = Scheduler(limits, now: now)
        let keys = try (1...6 as ClosedRange<UInt8>).map { try key($0) }
        for (index, key) in keys.dropLast().enumerated() { receive(&work, "m\(index)", key) }
        #expect(runCycle(&work) == ["decide 1 2 3 4 5"])
        decided(&work, (1...5).map { call("c\($0)") })
        #expect(runCycle(&work) == ["start c1 c2"])
        // Two are in flight, and two wait.
        _ = work.ended(started(keys[0], "c1"), answer: "done", now: now)
        // Collected items use capacity, as the calls that they may become: otherwise they would be deferred again.
        let room = work.roomForMessages(now: now)
        receive(&work, "m6", keys[5])
        #expect(work.roomForMessages(now: now) == room - 1)
        #expect(runCycle(&work) == [])
        #expect(work.gatheringMax(now: now) == .milliseconds(20))
        var (late, few, stopping) = (work, work, work)
        #expect(runCycle(&late, at: now + .milliseconds(20)) == ["decide 1 6"])
        _ = few.ended(started(keys[1], "c2"), answer: "done", now: now)
        #expect(runCycle(&few) == ["decide 1 6 2"])
        stopping.stop()
        #expect(runCycle(&stopping) == ["decide 1 6"])
    }

    /// The simulation tests the engine that a worker runs.
    @Test func workerAndSimulationRunTheSameEngine() {
        func engine<Message, Call>(_: WorkScheduler<Message, Call>.Type) -> String {
            String(reflecting: WorkScheduler<Message, Call>.self).prefix { $0 != "<" }.description
        }
        #expect(engine(Worker<CallingHandler>.Scheduler.self) == "KeyedWorker.WorkScheduler")
        #expect(engine(SimulatedWorker.Scheduler.self) == "KeyedWorker.WorkScheduler")
    }
}
