import Essentials
import Kafka
import Synchronization

/// A handler's call with how it is made: as things were set up when it was decided.
struct PreparedCall<H: Handler>: ScheduledCall {
    let call: H.Call
    let kind: CallKind
    let unmade: H.Answer?
    /// `nil`: as things are set up it cannot be made, and is taken back.
    let make: (@Sendable (H.Call) async -> H.Answer)?
    /// What its requests belong to.
    var trace: TraceContext?
}

/// Makes a worker's calls beside its loop, and owns the scheduler that both ask.
final class CallRunner<H: Handler>: Sendable {
    let scheduler: Mutex<WorkScheduler<Receipt, PreparedCall<H>>>
    private let wakeup: Wakeup

    /// - Parameter wakeup: Signalled when something came of a call.
    init(_ scheduler: WorkScheduler<Receipt, PreparedCall<H>>, wakeup: Wakeup) {
        self.scheduler = Mutex(scheduler)
        self.wakeup = wakeup
    }

    func start(_ calls: [StartedCall<PreparedCall<H>>]) {
        for call in calls { Task { await self.makeCalls(from: call) } }
    }

    /// One place in the window: makes calls as long as some wait.
    private func makeCalls(from first: StartedCall<PreparedCall<H>>) async {
        var current: StartedCall? = first
        while let started = current {
            // A last time: it may have waited for a thread.
            let call = started.call
            let answer =
                ContinuousClock.now < started.startBefore
                ? await TraceContext.$current.withValue(call.trace) { await call.make?(call.call) } : nil
            current = scheduler.withLock { $0.ended(started, answer: answer, now: .now) }
            wakeup.signal()
        }
    }
}
