import Essentials
import Kafka
import Synchronization

/// A handler's call with the call function at the time of its decision.
struct PreparedCall<H: Handler>: ScheduledCall {
    let call: H.Call
    let kind: CallKind
    let resultWhenSkipped: H.CallResult?
    /// `nil`: calls are impossible with the current settings; the decision is rolled back.
    let make: (@Sendable (H.Call) async -> H.CallResult)?
    /// The trace of the call's requests.
    var trace: TraceContext?
}

/// Makes calls concurrently with the worker's loop. Owns the scheduler that both access.
final class CallRunner<H: Handler>: Sendable {
    let scheduler: Mutex<WorkScheduler<Receipt, PreparedCall<H>>>
    private let wakeup: Wakeup

    /// - Parameter wakeup: Signalled when a call ends.
    init(_ scheduler: WorkScheduler<Receipt, PreparedCall<H>>, wakeup: Wakeup) {
        self.scheduler = Mutex(scheduler)
        self.wakeup = wakeup
    }

    func start(_ calls: [StartedCall<PreparedCall<H>>]) {
        for call in calls { Task { await self.makeCalls(from: call) } }
    }

    /// One slot: makes calls while some wait.
    private func makeCalls(from first: StartedCall<PreparedCall<H>>) async {
        var current: StartedCall? = first
        while let started = current {
            // Checked again, since the task may have waited for a thread.
            let call = started.call
            let answer =
                ContinuousClock.now < started.startBefore
                ? await TraceContext.$current.withValue(call.trace) { await call.make?(call.call) } : nil
            current = scheduler.withLock { $0.ended(started, answer: answer, now: .now) }
            wakeup.signal()
        }
    }
}
