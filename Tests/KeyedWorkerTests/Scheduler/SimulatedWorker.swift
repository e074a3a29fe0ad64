import Essentials
import Model

@testable import KeyedWorker

/// What a worker's process has in memory: gone when it is killed.
struct SimulatedWorker {
    typealias Scheduler = WorkScheduler<SimulatedMessage, SimulatedCall>

    /// What the loop is in the middle of.
    enum Doing {
        case nothing
        /// A handler has decided; the transaction is under way.
        case committing(WorkPlan<SimulatedCall>, [SimulatedWrite])
        case parking([ParkedKeys.Parking])
    }

    /// A partition that it reads.
    struct Reading {
        let assignment: Int
        var next: Int
        /// Messages that were delivered and are not finished, in order.
        var unfinished: [Int] = []
    }

    var scheduler: Scheduler
    var doing = Doing.nothing
    var readings: [Int: Reading] = [:]
    var calls: [StartedCall<SimulatedCall>] = []
    /// Messages of edits that came, with their entries, as long as no decision took them for such.
    var unseenEdits: [SimulatedMessage: Int] = [:]

    init(_ limits: WorkerLimits, now: Instant) { scheduler = Scheduler(limits, now: now) }

    /// A decision took an entry for edited, or it is parked.
    mutating func sawEdits(of entry: Int) { unseenEdits = unseenEdits.filter { $0.value != entry } }

    /// Marks messages as finished.
    ///
    /// - Returns: What is committed now, by partition.
    mutating func finish(_ messages: [SimulatedMessage], mistake: Mistake?) -> [Int: Int] {
        var committed: [Int: Int] = [:]
        for message in messages {
            guard var reading = readings[message.partition] else { continue }
            guard reading.assignment == message.assignment || mistake == .finishesOfAnEarlierAssignment else {
                continue
            }
            reading.unfinished.removeAll { $0 == message.offset }
            readings[message.partition] = reading
            committed[message.partition] =
                mistake == .finishesAboveUnfinished
                ? max(message.offset + 1, committed[message.partition] ?? 0) : reading.unfinished.first ?? reading.next
            if mistake == .finishesOfAnEarlierAssignment {
                committed[message.partition] = max(committed[message.partition] ?? 0, message.offset + 1)
            }
        }
        return committed
    }
}
