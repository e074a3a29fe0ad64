import Essentials
import FoundationEssentials
import Model
import Synchronization
import TestSupport
import Testing

@testable import Kafka
@testable import KeyedWorker

@Suite(.ownThreads) struct CallRunnerTests {
    /// The number of calls in flight, and its maximum.
    private final class Gauge: Sendable {
        private let counts = Mutex((now: 0, most: 0, all: 0))

        func enter() { counts.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.all + 1) } }
        func leave() { counts.withLock { $0.now -= 1 } }
        var most: Int { counts.withLock { $0.most } }
        var all: Int { counts.withLock { $0.all } }
    }

    /// Calls end on their own threads and start the next ones, without the worker's loop.
    @Test func allCallsAreMadeWithinTheSlots() async throws {
        let acme = EnvironmentID(rawValue: 1)
        var limits = WorkerLimits()
        limits.inFlightMax = 4
        var scheduler = WorkScheduler<Receipt, PreparedCall<CallingHandler>>(limits, now: .now)
        let partition = TopicPartition(topic: "realm.events", partition: 0)
        let ids = (0..<100).map { _ in UUID() }
        for (slot, id) in ids.enumerated() {
            let key = WorkKey(environment: acme, subject: EventSubject(realm: .users, kind: .realms, id: id))
            let receipt = Receipt(partition: partition, tracker: 1, slot: slot)
            scheduler.received(receipt, of: key, at: 1, isEdit: true, from: partition, now: .now)
        }
        while let action = scheduler.next(now: .now) { if case .decide = action { break } }
        let gauge = Gauge()
        let calls: [Disposition<PreparedCall<CallingHandler>>] = ids.map { id in
            let call = PreparedCall<CallingHandler>(call: id, kind: .write, resultWhenSkipped: nil) { id in
                gauge.enter()
                await Task.yield()
                gauge.leave()
                return id
            }
            return .call(call, startBefore: .now + .seconds(600))
        }
        scheduler.committed(scheduler.plan(calls, now: .now), missed: [], now: .now)
        let runner = CallRunner(scheduler, wakeup: try Wakeup())
        runner.start(runner.scheduler.withLock { $0.startCalls(now: .now) })
        while gauge.all < 100 { await Task.yield() }
        while runner.scheduler.withLock({ $0.calls.inFlightCount }) > 0 { await Task.yield() }
        #expect((1...4).contains(gauge.most) && gauge.all == 100)
        let answered = runner.scheduler.withLock { $0.queues[acme]?.filter(\.item.isAnswer).count }
        #expect(answered == 100)
    }
}
