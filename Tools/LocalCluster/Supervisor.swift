import Foundation
import Synchronization

/// Processes that belong together: started one after the other, started again when they end, and stopped in the
/// opposite order.
package final class Supervisor: Sendable {
    /// A supervised process.
    package struct Member: Sendable {
        package let name: String
        /// The signal that stops it.
        package var stopSignal = SIGTERM
        package let start: @Sendable () throws -> ClusterProcess

        package init(
            _ name: String, stopSignal: Int32 = SIGTERM, start: @escaping @Sendable () throws -> ClusterProcess
        ) {
            self.name = name
            self.stopSignal = stopSignal
            self.start = start
        }
    }

    /// A process that ended by itself.
    package struct Fall: Sendable {
        package let name: String
        /// `nil` when it could not even be started.
        package let end: ClusterProcess.End?
        /// The time until its restart.
        package let wait: Duration
    }

    private struct Slot {
        var member: Member
        var process: ClusterProcess
        var startedAt = ContinuousClock.now
        var restart = RestartPolicy()
        /// When it is started again; `nil` while it is not known to have ended.
        var dueAt: ContinuousClock.Instant?

        /// Restarts the process when it is due.
        ///
        /// - Returns: Its end, if that is new.
        mutating func update(_ now: ContinuousClock.Instant) -> Fall? {
            var end: ClusterProcess.End?
            if let dueAt {
                guard dueAt <= now else { return nil }
                if let started = try? member.start() {
                    (process, startedAt, self.dueAt) = (started, now, nil)
                    return nil
                }
            } else {
                guard let ended = process.end else { return nil }
                end = ended
            }
            let wait = restart.ended(after: end == nil ? .zero : now - startedAt)
            dueAt = now + wait
            return Fall(name: member.name, end: end, wait: wait)
        }
    }

    private let slots = Mutex<[Slot]>([])

    package init() {}

    /// Starts a process; one of this name that was there before must have ended.
    package func start(_ member: Member) throws {
        adopt(member, try member.start())
    }

    /// Takes over a process that runs.
    package func adopt(_ member: Member, _ process: ClusterProcess) {
        slots.withLock { slots in
            if let index = slots.firstIndex(where: { $0.member.name == member.name }) {
                slots[index].member = member
                slots[index].process = process
                slots[index].startedAt = .now
                slots[index].dueAt = nil
            } else {
                slots.append(Slot(member: member, process: process))
            }
        }
    }

    /// The process that was last started under this name.
    package func process(_ name: String) -> ClusterProcess? {
        slots.withLock { $0.first { $0.member.name == name }?.process }
    }

    /// Those that have ended, and the names they were started under.
    package var ended: [(name: String, process: ClusterProcess)] {
        slots.withLock { $0.filter { $0.process.end != nil }.map { ($0.member.name, $0.process) } }
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
            slot.process.signal(slot.member.stopSignal)
            guard slot.process.waitForEnd(within: each) == nil else { continue }
            killed(slot.member.name)
            slot.process.kill9()
        }
    }

    /// Ends all as a crash would.
    package func kill9() {
        for slot in slots.withLock({ $0 }) { slot.process.kill9() }
    }
}
