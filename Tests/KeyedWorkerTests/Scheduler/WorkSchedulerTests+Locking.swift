import Model
import Testing

@testable import KeyedWorker

extension WorkSchedulerTests {
    /// Another transaction holds a lock: events wait for a second and are then deferred, a result waits, other
    /// environments make progress.
    @Test func lockedEnvironmentDefersItsEvents() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        let a = try key(1)
        receive(&work, "a", a)
        #expect(runCycle(&work) == ["decide 1"])
        decided(&work, [call("create")])
        #expect(runCycle(&work) == ["start create"])
        _ = work.ended(started(a, "create"), answer: "created", now: now)
        receive(&work, "b", try key(2))
        #expect(runCycle(&work) == ["decide 1 2"])
        work.locked("locked", now: now, random: 0.5)
        receive(&work, "o", try key(9, in: other))
        #expect(runCycle(&work) == ["decide 9"])
        decided(&work, [.finished])
        #expect(runCycle(&work) == ["finish o"])
        #expect(runCycle(&work) == [] && !work.isIdle)
        // Events that waited are decided in their order.
        receive(&work, "c", try key(3))
        let later = now + .seconds(1)
        #expect(runCycle(&work, at: later) == ["decide 1 2 3"])
        work.locked("locked", now: later, random: 0.5)
        #expect(runCycle(&work, at: later) == ["defer 2 3"])
        work.deferred(now: later)
        #expect(runCycle(&work, at: later) == ["finish b c"])
        #expect(runCycle(&work, at: later) == [] && !work.isIdle)
        #expect(runCycle(&work, at: later + .seconds(1)) == ["decide 1"])
    }

    /// A stopping worker defers events at once, and finishes their messages.
    @Test func stoppingWorkerDefersEventsOfLockedEnvironment() throws {
        var work = Scheduler(WorkerLimits(), now: now)
        receive(&work, "a", try key(1))
        #expect(runCycle(&work) == ["decide 1"])
        work.locked("locked", now: now, random: 0.5)
        #expect(runCycle(&work) == [] && !work.hasOnlyLockedWork(now: now))
        work.stop()
        #expect(runCycle(&work) == ["defer 1"])
        work.deferred(now: now)
        #expect(runCycle(&work) == ["finish a"] && work.isIdle)
    }

    /// Many events do not wait for locks: they would need the capacity of other environments.
    @Test func manyEventsOfLockedEnvironmentAreDeferred() throws {
        var limits = WorkerLimits()
        limits.batchCountMax = 2
        var work = Scheduler(limits, now: now)
        for number in 1...2 as ClosedRange<UInt8> { receive(&work, "m\(number)", try key(number)) }
        #expect(runCycle(&work) == ["decide 1 2"])
        work.locked("locked", now: now, random: 0.5)
        #expect(runCycle(&work) == [])
        receive(&work, "m3", try key(3, in: other))
        #expect(runCycle(&work) == ["decide 3"])
        work.locked("locked", now: now, random: 0.5)
        #expect(runCycle(&work) == ["defer 3"])
        work.deferred(now: now)
        #expect(runCycle(&work) == ["finish m3"])
        #expect(runCycle(&work) == [])
    }

    /// Regardless of the number of results that wait for one environment's lock, other environments' messages are
    /// taken.
    @Test func resultsBehindALockUseNoCapacity() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 200
        var work = Scheduler(limits, now: now)
        let keys = try (1...200 as ClosedRange<UInt8>).map { try key($0) }
        for key in keys { receive(&work, "m", key) }
        let all = runCycle(&work)
        #expect(all.count == 1)
        decided(&work, keys.map { _ in call("create") })
        _ = runCycle(&work)
        let later = now + .seconds(1)
        for key in keys { _ = work.ended(started(key, "create"), answer: "created", now: later) }
        _ = runCycle(&work, at: later)
        work.locked("another worker runs on it", now: later, random: 0.5)
        #expect(work.calls.count == 0 && work.inFlight.count == 200)
        #expect(work.roomForMessages(now: later) == 512)
    }
}
