import Testing

@testable import KeyedWorker

extension WorkSchedulerTests {
    /// An idle worker waits for messages; one whose calls wait for slots or rate limits polls more often.
    @Test func waitIsShorterWhileCallsWait() throws {
        var limits = WorkerLimits()
        limits.inFlightMax = 1
        var work = Scheduler(limits, now: now)
        work.assigned([partition])
        /// The wait of the next cycle, after a scan that finds no deferred keys.
        func wait() -> Duration? {
            var waited: Duration?
            while let action = work.next(now: now) {
                switch action {
                case .take(_, let waitMax, _): waited = waitMax
                case .takeDue(let request): work.due([], of: request, deferredIn: [])
                default: break
                }
            }
            return waited
        }
        _ = wait()
        #expect(wait() == .seconds(1))
        for number in [1, 2] as [UInt8] { receive(&work, "m\(number)", try key(number)) }
        #expect(runCycle(&work) == ["decide 1 2"])
        decided(&work, [call("c1"), call("c2")])
        _ = wait()
        #expect(wait() == .milliseconds(100))
    }
}
