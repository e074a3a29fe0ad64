import Essentials
import Foundation
import Synchronization

/// Processes that belong together: started one after the other, started again when they end, and stopped in the
/// opposite order.
package final class Supervisor: Sendable {
    /// A process that ended by itself, or could not even be started (no end), with the time until its restart.
    package typealias Fall = (name: String, end: ClusterProcess.End?, wait: Duration)

    private struct Slot {
        let name: String
        /// The signal that stops the process.
        let stopSignal: Int32
        let start: @Sendable () throws -> ClusterProcess
        var process: ClusterProcess
        var startedAt = ContinuousClock.now
        /// A process that ran for more than ``settledMin`` is restarted after the first wait again.
        var backoff = Backoff(first: .seconds(1), waitMax: .seconds(30))
        /// When it is started again; `nil` while it is not known to have ended.
        var dueAt: ContinuousClock.Instant?

        /// Restarts the process when it is due.
        ///
        /// - Returns: Its end, if that is new.
        mutating func update(_ now: ContinuousClock.Instant) -> Fall? {
            var end: ClusterProcess.End?
            if let dueAt {
                guard dueAt <= now else { return nil }
                if let started = try? start() {
                    (process, startedAt, self.dueAt) = (started, now, nil)
                    return nil
                }
            } else {
                guard let ended = process.end else { return nil }
                end = ended
            }
            if end != nil, now - startedAt > Supervisor.settledMin { backoff.succeeded() }
            let wait = backoff.failed(random: 1)
            dueAt = now + wait
            return (name, end, wait)
        }
    }

    private static let settledMin = Duration.seconds(60)

    private let slots = Mutex<[Slot]>([])

    package init() {}

    /// Starts a process; one of this name that was there before must have ended.
    package func start(_ name: String, _ start: @escaping @Sendable () throws -> ClusterProcess) throws {
        adopt(name, try start(), restart: start)
    }

    /// Takes over a process that runs.
    package func adopt(
        _ name: String, _ process: ClusterProcess, stopSignal: Int32 = SIGTERM,
        restart: @escaping @Sendable () throws -> ClusterProcess
    ) {
        slots.withLock { slots in
            let slot = Slot(name: name, stopSignal: stopSignal, start: restart, process: process)
            if let index = slots.firstIndex(where: { $0.name == name }) {
                slots[index] = slot
            } else {
                slots.append(slot)
            }
        }
    }

    /// The process that was last started under this name.
    package func process(_ name: String) -> ClusterProcess? {
        slots.withLock { $0.first { $0.name == name }?.process }
    }

    /// Those that have ended, and the names they were started under.
    package var ended: [(name: String, process: ClusterProcess)] {
        slots.withLock { $0.filter { $0.process.end != nil }.map { ($0.name, $0.process) } }
    }

    /// Restarts processes that have ended, after their backoff. Call it repeatedly.
    ///
    /// - Returns: The processes that have ended since the last call.
    package func restartWhatEnded(now: ContinuousClock.Instant = .now) -> [Fall] {
        slots.withLock { slots in slots.indices.compactMap { slots[$0].update(now) } }
    }

    /// Stops all processes in the reverse order of their start, one after the other.
    ///
    /// - Parameters:
    ///   - each: Maximum time of a stop; then the process is killed.
    ///   - killed: Called with the name of each killed process.
    package func stop(each: Duration, killed: (String) -> Void) {
        let all = slots.withLock { slots in
            defer { slots = [] }
            return slots
        }
        for slot in all.reversed() {
            slot.process.signal(slot.stopSignal)
            guard slot.process.waitForEnd(within: each) == nil else { continue }
            killed(slot.name)
            slot.process.kill9()
        }
    }

    /// Ends all as a crash would.
    package func kill9() {
        for slot in slots.withLock({ $0 }) { slot.process.kill9() }
    }
}
