import Essentials
import FoundationEssentials
import Kafka
import Model
import Testing

@testable import KeyedWorker

/// A worker's engine, step by step: what comes in, and what it says is to be done.
@Suite struct WorkSchedulerTests {
    struct TestCall: ScheduledCall, Equatable {
        let name: String
        var kind = CallKind.write
        var unmade: String?
    }

    typealias Scheduler = WorkScheduler<String, TestCall>

    private let acme = EnvironmentID(rawValue: 1)
    private let other = EnvironmentID(rawValue: 2)
    private let now = ContinuousClock.now
    private let place = TopicPartition(topic: "entry.events", partition: 0)

    private func key(_ number: UInt8, in environment: EnvironmentID? = nil) throws -> WorkKey {
        WorkKey(
            environment: environment ?? acme,
            subject: EventSubject(
                realm: try .user("p\(number)@example.com"), kind: .timeEntry,
                id: UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number))))
    }

    /// What is to be done in this round or, when it ends without anything, in the next, in few words; nothing is taken.
    private func round(_ work: inout Scheduler, at time: ContinuousClock.Instant? = nil) -> [String] {
        let said = restOfRound(&work, at: time)
        return said.isEmpty ? restOfRound(&work, at: time) : said
    }

    private func restOfRound(_ work: inout Scheduler, at time: ContinuousClock.Instant?) -> [String] {
        var said: [String] = []
        while let action = work.next(now: time ?? now) {
            switch action {
            case .finish(let messages): said.append("finish \(messages.sorted().joined(separator: " "))")
            case .start(let calls): said.append("start \(calls.map(\.call.name).joined(separator: " "))")
            case .decide(let items, _):
                said.append("decide \(items.map { String($0.item.subject.id.uuid.15) }.joined(separator: " "))")
                return said
            case .park(let parkings, _):
                said.append("park \(parkings.map { String($0.subject.id.uuid.15) }.joined(separator: " "))")
                return said
            case .note, .take, .takeDue, .wait: break
            }
        }
        return said
    }

    private func hear(_ work: inout Scheduler, _ message: String, _ key: WorkKey) {
        work.received(message, of: key, at: 1, isEdit: true, from: place, now: now)
    }

    private func decided(_ work: inout Scheduler, _ dispositions: [Disposition<TestCall>]) {
        work.committed(work.plan(dispositions, now: now), missed: [], now: now)
    }

    private func call(_ name: String, unmade: String? = nil) -> Disposition<TestCall> {
        .call(TestCall(name: name, unmade: unmade), startBefore: now + .seconds(600))
    }

    private func started(_ key: WorkKey, _ name: String) -> StartedCall<TestCall> {
        StartedCall(key: key, call: TestCall(name: name), startBefore: now + .seconds(600), begunAt: now)
    }

    @Test func aKeyIsInOnePairOfHands() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a1", a), ("a2", a), ("b1", b)] { hear(&work, message, key) }
        #expect(round(&work) == ["decide 1 2"])
        decided(&work, [call("create"), .finished])
        #expect(round(&work) == ["finish b1", "start create"])
        // a2 came with a1: it is decided once the call is. a3 waits behind it.
        hear(&work, "a3", a)
        #expect(round(&work) == [])
        _ = work.ended(started(a, "create"), answer: "created", now: now)
        #expect(round(&work) == ["decide 1"])
        decided(&work, [.finished])
        #expect(round(&work) == ["decide 1"])
        decided(&work, [.finished])
        #expect(round(&work) == ["finish a1 a2 a3"])
        #expect(work.isIdle && work.heldMessageCount == 0)
    }

    @Test func whatMissedIsDecidedAgainAndWhatFailedToo() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        for number in 1...3 as ClosedRange<UInt8> { hear(&work, "m\(number)", try key(number)) }
        #expect(round(&work) == ["decide 1 2 3"])
        work.committed(work.plan([.finished, .finished, .finished], now: now), missed: [1], now: now)
        #expect(round(&work) == ["finish m1 m3"])
        #expect(round(&work) == ["decide 2"])
        work.failed("PostgreSQL is away", now: now, random: 0.5)
        #expect(work.waiting(now: now)?.reason == "PostgreSQL is away")
        let later = now + .seconds(1)
        #expect(work.waiting(now: later) == nil && round(&work, at: later) == ["decide 2"])
    }

    @Test func environmentsTakeTurns() throws {
        var limits = WorkerLimits()
        limits.batchCountMax = 2
        var work = Scheduler(limits, now: now)
        for number in 1...5 as ClosedRange<UInt8> { hear(&work, "m\(number)", try key(number)) }
        hear(&work, "o", try key(9, in: other))
        var turns: [String] = []
        while let turn = round(&work).last, turn.hasPrefix("decide") {
            turns.append(turn)
            decided(&work, turn.split(separator: " ").dropFirst().map { _ in .again })
            if turns.count == 4 { break }
        }
        #expect(turns == ["decide 1 2", "decide 9", "decide 3 4", "decide 9"])
    }

    /// The batch is halved until the key whose row is refused is alone.
    @Test func whatPostgreSQLRefusesIsParkedDeadAlone() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        for number in 1...4 as ClosedRange<UInt8> { hear(&work, "m\(number)", try key(number)) }
        #expect(round(&work) == ["decide 1 2 3 4"])
        work.refused("a bad row")
        #expect(round(&work) == ["decide 1 2"])
        work.refused("a bad row")
        #expect(round(&work) == ["decide 1"])
        work.refused("a bad row")
        guard case .park(let parkings, _) = work.next(now: now) else {
            Issue.record("nothing is parked")
            return
        }
        #expect(parkings.map(\.isDead) == [true] && parkings.map(\.reason) == ["PostgreSQL refused it: a bad row"])
        work.parked(now: now)
        #expect(round(&work).contains("decide 2"))
        decided(&work, [.finished])
        #expect(round(&work).contains("decide 3 4"))
    }

    /// Somebody holds a lock: its events are put aside, an answer waits, others go on.
    @Test func aLockedEnvironmentIsSetAside() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let a = try key(1)
        hear(&work, "a", a)
        #expect(round(&work) == ["decide 1"])
        decided(&work, [call("create")])
        #expect(round(&work) == ["start create"])
        _ = work.ended(started(a, "create"), answer: "created", now: now)
        hear(&work, "b", try key(2))
        #expect(round(&work) == ["decide 1 2"])
        work.locked("a lock", now: now, random: 0.5)
        hear(&work, "o", try key(9, in: other))
        #expect(round(&work) == ["park 2"])
        work.parked(now: now)
        #expect(round(&work) == ["finish b", "decide 9"])
        decided(&work, [.finished])
        #expect(round(&work) == ["finish o"])
        #expect(round(&work) == [] && !work.isIdle)
        #expect(round(&work, at: now + .seconds(1)) == ["decide 1"])
    }

    /// What was begun is waited for; what was not is taken back, and left to the next worker or answered.
    @Test func aWorkerThatStopsTakesBackWhatHasNotBegun() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        let keys = try (1...3 as ClosedRange<UInt8>).map { try key($0) }
        for (index, key) in keys.enumerated() { hear(&work, "m\(index + 1)", key) }
        #expect(round(&work) == ["decide 1 2 3"])
        decided(&work, [call("1"), call("2"), call("3", unmade: "was not made")])
        #expect(round(&work) == ["start 1"])
        work.stop()
        #expect(round(&work) == ["decide 3"])
        decided(&work, [.park(reason: "later", after: .seconds(1), cause: .planned)])
        #expect(round(&work) == ["finish m3"])
        #expect(!work.isIdle)
        _ = work.ended(started(keys[0], "1"), answer: "done", now: now)
        #expect(round(&work) == ["decide 1"])
        decided(&work, [.finished])
        #expect(round(&work) == ["finish m1"])
        // The message of the second is not finished: it comes to the next worker.
        #expect(work.isIdle)
    }

    @Test func aCallThatEndsTakesTheNextAlong() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a", a), ("b", b)] { hear(&work, message, key) }
        _ = round(&work)
        decided(&work, [call("1"), call("2")])
        #expect(round(&work) == ["start 1"])
        let next = work.ended(started(a, "1"), answer: "done", now: now)
        #expect(next?.key == b && next?.call.name == "2")
        #expect(work.calls.underWayCount == 1)
    }

    /// Where answers are large, no more of them are held than there are places.
    @Test func answersMayKeepTheirPlacesUntilARoundTakesThemUp() throws {
        var limits = WorkerLimits()
        (limits.inFlightMax, limits.answersKeepPlaces) = (1, true)
        var work = Scheduler(limits, now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a", a), ("b", b)] { hear(&work, message, key) }
        _ = round(&work)
        decided(&work, [call("1"), call("2")])
        #expect(round(&work) == ["start 1"])
        #expect(work.ended(started(a, "1"), answer: "large", now: now) == nil)
        #expect(work.startCalls(now: now).isEmpty)
        // The next call is under way while the answer is decided.
        #expect(round(&work) == ["start 2", "decide 1"])
    }

    /// An answer that comes between a round's beginning and its decisions is decided with it. Its place was kept for
    /// ever, and a worker with as many of them made no call again.
    @Test func anAnswerThatComesInTheMidstOfARoundGivesItsPlaceBack() throws {
        var limits = WorkerLimits()
        (limits.inFlightMax, limits.answersKeepPlaces) = (2, true)
        var work = Scheduler(limits, now: now)
        work.assigned([place])
        let (a, b) = (try key(1), try key(2))
        hear(&work, "a", a)
        _ = round(&work)
        decided(&work, [call("1")])
        _ = round(&work)
        // The next round has looked at what is queued, and asks for parked keys.
        hear(&work, "b", b)
        while let action = work.next(now: now + .seconds(1)) { if case .takeDue = action { break } }
        #expect(work.ended(started(a, "1"), answer: "late", now: now) == nil)
        #expect(restOfRound(&work, at: now + .seconds(1)) == ["decide 2 1"])
        #expect(work.calls.underWayCount == 0)
    }

    /// A call whose time is over when its turn comes is not made, and its key is decided anew.
    @Test func aCallThatWaitedTooLongIsNotMade() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        let (a, b) = (try key(1), try key(2))
        for (message, key) in [("a", a), ("b", b)] { hear(&work, message, key) }
        _ = round(&work)
        decided(&work, [call("1"), .call(TestCall(name: "2"), startBefore: now + .seconds(5))])
        #expect(round(&work) == ["start 1"])
        let later = now + .seconds(6)
        #expect(work.ended(started(a, "1"), answer: "done", now: later) == nil)
        #expect(round(&work, at: later) == ["decide 1 2"])
    }

    /// The events of what a worker wrote itself come back to it: they say nothing new, and load nothing.
    @Test func whatWasDecidedFromIsNotDecidedAgain() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let a = try key(1)
        work.received("a1", of: a, at: 7, isEdit: true, from: place, now: now)
        #expect(round(&work) == ["decide 1"])
        work.committed(work.plan([call("create")], now: now), missed: [], positions: [0: 8], now: now)
        #expect(round(&work) == ["start create"])
        for (message, position) in [("a2", Int64(8)), ("a1 again", 7)] {
            work.received(message, of: a, at: position, isEdit: true, from: place, now: now)
        }
        // They are finished with their key: until then its first message may be needed again, elsewhere.
        #expect(round(&work) == [])
        work.received("a3", of: a, at: 9, isEdit: true, from: place, now: now)
        _ = work.ended(started(a, "create"), answer: "created", now: now)
        #expect(round(&work) == ["decide 1"])
        // Decided from 9, and written at 10: but a3 came before, and is looked at once more.
        work.committed(work.plan([.finished], now: now), missed: [], positions: [0: 10], now: now)
        #expect(round(&work) == ["decide 1"])
        work.committed(work.plan([.finished], now: now), missed: [], positions: [0: 10], now: now)
        #expect(round(&work) == ["finish a1 a1 again a2 a3"])
        work.received("a2 again", of: a, at: 8, isEdit: true, from: place, now: now)
        #expect(round(&work) == ["finish a2 again"])
        // Somebody may want it decided again: what is said twice a minute apart is.
        work.received("a3 again", of: a, at: 9, isEdit: true, from: place, now: now + .seconds(61))
        #expect(round(&work, at: now + .seconds(61)) == ["decide 1"])
    }

    /// Nothing is parked anywhere: no row is removed, and a decision that writes nothing needs no transaction.
    @Test func rowsAreRemovedOnlyWhereThereAreSome() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let request = DueRequest(countMax: 1, roomMax: 1, exceptions: [:], hastened: [:])
        for (environments, isReleased) in [(Set<EnvironmentID>?.none, true), ([], false), ([acme], true)] {
            if let environments { work.due([], of: request, parkedIn: environments) }
            work.received("m", of: try key(1), at: isReleased ? 1 : 2, isEdit: true, from: place, now: now)
            _ = round(&work)
            let plan = work.plan([.finished], now: now)
            #expect(plan.released.isEmpty != isReleased)
            work.committed(plan, missed: [], now: now)
            _ = round(&work)
        }
    }

    /// While calls wait for places, answers are written together: nothing comes later for it. A new message is taken
    /// in the same way, and a bound ends it.
    @Test func answersGatherWhileCallsWait() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 2
        var work = Scheduler(limits, now: now)
        let keys = try (1...6 as ClosedRange<UInt8>).map { try key($0) }
        for (index, key) in keys.dropLast().enumerated() { hear(&work, "m\(index)", key) }
        #expect(round(&work) == ["decide 1 2 3 4 5"])
        decided(&work, (1...5).map { call("c\($0)") })
        #expect(round(&work) == ["start c1 c2"])
        // Two are under way then, and two wait.
        _ = work.ended(started(keys[0], "c1"), answer: "done", now: now)
        // What is gathered takes room like the calls it may become: else they would be put down again.
        let room = work.roomForMessages(now: now)
        hear(&work, "m6", keys[5])
        #expect(work.roomForMessages(now: now) == room - 1)
        #expect(round(&work) == [])
        #expect(work.gatheringMax(now: now) == .milliseconds(20))
        var (late, few, stopping) = (work, work, work)
        #expect(round(&late, at: now + .milliseconds(20)) == ["decide 1 6"])
        _ = few.ended(started(keys[1], "c2"), answer: "done", now: now)
        #expect(round(&few) == ["decide 1 6 2"])
        stopping.stop()
        #expect(round(&stopping) == ["decide 1 6"])
    }

    /// However many answers wait for somebody's lock in one environment, messages of the others are taken.
    @Test func answersThatWaitForALockTakeNoRoom() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 200
        var work = Scheduler(limits, now: now)
        let keys = try (1...200 as ClosedRange<UInt8>).map { try key($0) }
        for key in keys { hear(&work, "m", key) }
        let all = round(&work)
        #expect(all.count == 1)
        decided(&work, keys.map { _ in call("create") })
        _ = round(&work)
        let later = now + .seconds(1)
        for key in keys { _ = work.ended(started(key, "create"), answer: "created", now: later) }
        _ = round(&work, at: later)
        work.locked("somebody works on it", now: later, random: 0.5)
        #expect(work.calls.count == 0 && work.inFlight.count == 200)
        #expect(work.roomForMessages(now: later) == 512)
    }

    /// What the simulation proves is what a worker runs.
    @Test func workerAndSimulationRunTheSameEngine() {
        func engine<Message, Call>(_: WorkScheduler<Message, Call>.Type) -> String {
            String(reflecting: WorkScheduler<Message, Call>.self).prefix { $0 != "<" }.description
        }
        #expect(engine(Worker<CallingHandler>.Scheduler.self) == "KeyedWorker.WorkScheduler")
        #expect(engine(SimulatedWorker.Scheduler.self) == "KeyedWorker.WorkScheduler")
    }
}
