import Essentials
import Model

@testable import KeyedWorker

/// The memory of a worker's process; lost when it is killed.
struct SimulatedWorker {
    typealias Scheduler = WorkScheduler<SimulatedMessage, SimulatedCall>

    /// The current operation of the loop.
    enum Operation {
        case nothing
        /// A handler has decided; the transaction is in progress.
        case committing(WorkPlan<SimulatedCall>, [SimulatedWrite])
        case deferral([DeferredKeys.Deferral])
    }

    /// A partition that it reads.
    struct Reading {
        let assignment: Int
        var next: Int
        /// Delivered, unfinished messages, in order.
        var unfinished: [Int] = []
    }

    var scheduler: Scheduler
    var operation = Operation.nothing
    var readings: [Int: Reading] = [:]
    var calls: [StartedCall<SimulatedCall>] = []
    /// Messages of edits, with their entries, until a decision treats the entry as edited.
    var unseenEdits: [SimulatedMessage: Int] = [:]

    init(_ limits: WorkerLimits, now: Instant) { scheduler = Scheduler(limits, now: now) }

    /// The entry was decided as edited, or deferred.
    mutating func clearUnseenEdits(of entry: Int) { unseenEdits = unseenEdits.filter { $0.value != entry } }

    /// Marks messages as finished.
    ///
    /// - Returns: The offsets to commit, by partition.
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
