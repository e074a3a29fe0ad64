import Essentials
import FoundationEssentials
import Kafka
import Model
import Postgres
import Testing

@testable import KeyedWorker

typealias Instant = ContinuousClock.Instant

/// A call to the simulated back end: writes one version of an entry, or queries whether it was written.
struct SimulatedCall: ScheduledCall, Equatable {
    let entry: Int
    let version: Int
    /// The attempt of the call: the position that it was decided from.
    let attempt: Int
    let kind: CallKind
    var resultWhenSkipped: SimulatedResult? {
        kind == .write ? SimulatedResult(attempt: attempt, found: .notMade) : nil
    }
}

/// The result of a call.
struct SimulatedResult: Equatable {
    enum Outcome: Equatable {
        case written, notWritten, unknown, notMade, away, refused
        case busy(Duration)
    }

    let attempt: Int
    let found: Outcome
}

/// PostgreSQL's row of an entry.
struct SimulatedEntry: Equatable {
    struct Attempt: Equatable {
        let number: Int
        let version: Int
        /// Time until which the call may be in flight.
        let until: Instant
    }

    /// Number of the device's edits.
    var version = 0
    /// The version that the back end is recorded to have.
    var recorded = 0
    /// The ledger's open attempt.
    var attempt: Attempt?
    var position = 0
    /// Position of the last edit.
    var editPosition = 0

    /// Whether its next event is an edit.
    var isEdit: Bool { position == editPosition }
    var needsWork: Bool { version > recorded || attempt != nil }
}

/// A handler's write of an entry, and the position that it was decided from.
struct SimulatedWrite {
    let entry: Int
    let basis: Int
    var after: SimulatedEntry
}

/// A minimal submitter: writes each version of an entry to the back end at most once. An unknown outcome is queried
/// once the call cannot be in flight any more.
enum SimulatedRule {
    /// Maximum time from decision to start of a call, maximum duration of a call, and maximum delay of a call whose
    /// result is lost.
    static let sendMax = Duration.seconds(20)
    static let callMax = Duration.seconds(20)
    static let lateMax = Duration.seconds(10)
    static let lease = Duration.seconds(60)

    static func decide(
        _ origin: WorkItem<SimulatedResult>.Origin, _ number: Int, _ entry: SimulatedEntry, now: Instant
    ) -> (Disposition<SimulatedCall>, SimulatedEntry) {
        var entry = entry
        // A result of an attempt that is no longer open is ignored.
        if case .result(let answer) = origin, let attempt = entry.attempt, answer.attempt == attempt.number {
            if let disposition = apply(answer.found, of: attempt, &entry) { return (disposition, entry) }
        }
        if let attempt = entry.attempt {
            guard now >= attempt.until else {
                return (.deferred(reason: "settles", after: attempt.until - now, cause: .planned), entry)
            }
            let question = SimulatedCall(entry: number, version: attempt.version, attempt: attempt.number, kind: .read)
            return (.call(question, startBefore: now + sendMax), entry)
        }
        guard entry.version > entry.recorded else { return (.finished, entry) }
        entry.attempt = .init(number: entry.position, version: entry.version, until: now + lease)
        let write = SimulatedCall(
            entry: number, version: entry.version, attempt: entry.position, kind: .write)
        return (.call(write, startBefore: now + sendMax), entry)
    }

    /// - Returns: `nil`: the entry is decided as without a result.
    private static func apply(
        _ found: SimulatedResult.Outcome, of attempt: SimulatedEntry.Attempt, _ entry: inout SimulatedEntry
    ) -> Disposition<SimulatedCall>? {
        switch found {
        case .written:
            entry.recorded = attempt.version
            entry.attempt = nil
            return entry.version > entry.recorded ? .reprocess : .finished
        case .notWritten, .notMade:
            entry.attempt = nil
            return .reprocess
        case .unknown: return nil
        case .away:
            entry.attempt = nil
            return .deferred(reason: "away", after: .seconds(2), cause: .backendUnavailable)
        case .refused:
            entry.attempt = nil
            return .deferred(reason: "refused", after: .seconds(5), cause: .attempt)
        case .busy(let wait):
            entry.attempt = nil
            return .deferred(reason: "busy", after: wait, cause: .retryAfter(wait))
        }
    }
}

/// A row of `pipeline.parked`.
struct SimulatedRow {
    var deferral: DeferredKeys.Deferral
    var nextAt: Instant
}

/// The back end: how often each version of each entry was written, and writes that are still to happen.
struct SimulatedBackEnd {
    var written: [[Int: Int]]
    var late: [(at: Instant, entry: Int, version: Int)] = []

    mutating func write(_ version: Int, of entry: Int) { written[entry][version, default: 0] += 1 }

    mutating func pass(to now: Instant) {
        for work in late where work.at <= now { write(work.version, of: work.entry) }
        late.removeAll { $0.at <= now }
    }
}

/// One partition of a topic: for each message its entry, position, and whether it is an edit.
struct SimulatedPartition {
    var messages: [(entry: Int, position: Int, isEdit: Bool)] = []
    /// The group's committed offset.
    var committed = 0
    /// The offset of each entry's last message.
    var last: [Int: Int] = [:]

    mutating func append(_ number: Int, _ entry: SimulatedEntry) {
        last[number] = messages.count
        messages.append((number, entry.position, entry.isEdit))
    }
}

/// The scheduler's handle of a message.
struct SimulatedMessage: Hashable, Sendable {
    let partition: Int
    let offset: Int
    /// Number of the assignment: offsets finished after its end do not count.
    let assignment: Int
}

/// Deliberate mistakes of an engine; each is detected.
enum Mistake: String, CaseIterable, CustomTestStringConvertible {
    /// A message is finished when it arrives.
    case finishesAtOnce
    /// Offsets are stored up to the highest finished message.
    case finishesAboveUnfinished
    /// Offsets finished under an earlier assignment count.
    case finishesOfAnEarlierAssignment
    /// An event that arrives during its key's call is dropped.
    case dropsNewerEvents
    /// A version conflict is ignored.
    case ignoresConflicts
    /// A failed write is treated as written.
    case ignoresFailedWrites
    /// The current batch is dropped when PostgreSQL fails.
    case dropsFailedBatches
    /// Deferred keys are released before their rows are written.
    case releasesWithoutARow
    /// The row of a key that still waits is removed.
    case removesRowsOfWaitingKeys
    /// A result is dropped.
    case losesResults
    /// A call is taken from the queue twice.
    case makesACallTwice
    /// A call is made although its decision was rolled back.
    case callsRolledBackDecisions
    /// Due keys are not decided.
    case dropsDueKeys
    /// An event of a covered position is finished immediately, although its key is in flight.
    case finishesCoveredEventsAtOnce
    /// An event above the decided position is treated as covered.
    case ignoresNewerPositions
    /// A newer edit of a key in flight is treated as a service's write.
    case ignoresNewerEdits
    /// A deferred key whose event is not treated as an edit is no longer deferred afterwards.
    case releasesUneditedKeys
    /// A stopping worker does not wait for its calls, and finishes all its messages.
    case stopsAtOnce

    var testDescription: String { rawValue }
}

struct SimulationFailure: Error, CustomStringConvertible { let description: String }
