import Foundation
import Synchronization

/// Processes that belong together: started one after the other, started again when they end, and stopped in the
/// opposite order.
package final class Supervisor: Sendable {
    /// How one of the processes is started and stopped.
    package struct Member: Sendable {
        package let name: String
        /// The signal that asks it to end.
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

    /// A process that ended though nobody asked it to.
    package struct Fall: Sendable {
        package let name: String
        /// `nil` when it could not even be started.
        package let end: ClusterProcess.End?
        /// How long it stays away.
        package let wait: Duration
    }

    fileprivate struct Place {
        var member: Member
        var process: ClusterProcess
        var startedAt = ContinuousClock.now
        var restart = RestartPolicy()
        /// When it is started again; `nil` while it is not known to have ended.
        var dueAt: ContinuousClock.Instant?
    }

    private let places = Mutex<[Place]>([])

    package init() {}

    /// Starts a process; one of this name that was there before must have ended.
    package func start(_ member: Member) throws {
        adopt(member, try member.start())
    }

    /// Takes over a process that runs.
    package func adopt(_ member: Member, _ process: ClusterProcess) {
        places.withLock { places in
            if let index = places.firstIndex(where: { $0.member.name == member.name }) {
                places[index].member = member
                places[index].process = process
                places[index].startedAt = .now
                places[index].dueAt = nil
            } else {
                places.append(Place(member: member, process: process))
            }
        }
    }

    /// The process that was last started under this name.
    package func process(_ name: String) -> ClusterProcess? {
        places.withLock { $0.first { $0.member.name == name }?.process }
    }

    /// Those that have ended, and the names they were started under.
    package var ended: [(name: String, process: ClusterProcess)] {
        places.withLock { $0.filter { $0.process.end != nil }.map { ($0.member.name, $0.process) } }
    }

    /// Starts again what has ended and has waited for its turn; to be called again and again.
    ///
    /// - Returns: What was found to have ended since the last call.
    package func restartWhatEnded(now: ContinuousClock.Instant = .now) -> [Fall] {
        places.withLock { places in
            places.indices.compactMap { index in
                guard let due = places[index].dueAt else { return places[index].fall(now) }
                return due <= now ? places[index].startAgain(now) : nil
            }
        }
    }

    /// Asks all to end, the last one first, each after the one before it has ended.
    ///
    /// - Parameters:
    ///   - each: How long one of them may take; then it is killed.
    ///   - killed: Is told the name of each that was killed.
    package func stop(each: Duration, killed: (String) -> Void) {
        let all = places.withLock { places in
            defer { places = [] }
            return places
        }
        for place in all.reversed() {
            place.process.signal(place.member.stopSignal)
            guard place.process.waitForEnd(within: each) == nil else { continue }
            killed(place.member.name)
            place.process.kill9()
        }
    }

    /// Ends all as a crash would.
    package func kill9() {
        for place in places.withLock({ $0 }) { place.process.kill9() }
    }
}

extension Supervisor.Place {
    /// Notices its end.
    fileprivate mutating func fall(_ now: ContinuousClock.Instant) -> Supervisor.Fall? {
        guard let end = process.end else { return nil }
        return fall(end, now)
    }

    fileprivate mutating func startAgain(_ now: ContinuousClock.Instant) -> Supervisor.Fall? {
        guard let started = try? member.start() else { return fall(nil, now) }
        process = started
        startedAt = now
        dueAt = nil
        return nil
    }

    private mutating func fall(_ end: ClusterProcess.End?, _ now: ContinuousClock.Instant) -> Supervisor.Fall {
        let wait = restart.ended(after: end == nil ? .zero : now - startedAt)
        dueAt = now + wait
        return Supervisor.Fall(name: member.name, end: end, wait: wait)
    }
}
