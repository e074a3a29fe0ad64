import Essentials
import FoundationEssentials
import Kafka
import Model
import Postgres
import Testing

@testable import KeyedWorker

typealias Instant = ContinuousClock.Instant

/// A call to the simulated back end: it writes one version of an entry, or asks whether that was written.
struct SimulatedCall: ScheduledCall, Equatable {
    let entry: Int
    let version: Int
    /// Which attempt it belongs to: the position that it was decided from.
    let attempt: Int
    let kind: CallKind
    var unmade: SimulatedAnswer? { kind == .write ? SimulatedAnswer(attempt: attempt, found: .notMade) : nil }
}

/// What came of a call.
struct SimulatedAnswer: Equatable {
    enum Found: Equatable {
        case written, notWritten, unknown, notMade, away, refused
        case busy(Duration)
    }

    let attempt: Int
    let found: Found
}

/// What PostgreSQL holds of one entry.
struct SimulatedEntry: Equatable {
    struct Attempt: Equatable {
        let number: Int
        let version: Int
        /// Until then the call may be under way.
        let until: Instant
    }

    /// The device's edits.
    var version = 0
    /// The version that the back end is known to have.
    var recorded = 0
    /// The ledger's open attempt.
    var attempt: Attempt?
    var position = 0
    /// Where the device was last.
    var editPosition = 0

    /// Whether what is published of it now is an edit.
    var isEdit: Bool { position == editPosition }
    var needsWork: Bool { version > recorded || attempt != nil }
}

/// What a handler wants to write of an entry, and the position that it was decided from.
struct SimulatedWrite {
    let entry: Int
    let basis: Int
    var after: SimulatedEntry
}

/// A small submitter: each version of an entry is written to the back end at most once. What is unknown is asked for
/// once the call cannot be under way any more.
enum SimulatedRule {
    /// A call is sent within so long of its decision; it takes as long as that, and one whose answer is lost is done as
    /// much later.
    static let sendMax = Duration.seconds(20)
    static let callMax = Duration.seconds(20)
    static let lateMax = Duration.seconds(10)
    static let lease = Duration.seconds(60)

    static func decide(
        _ origin: WorkItem<SimulatedAnswer>.Origin, _ number: Int, _ entry: SimulatedEntry, now: Instant
    ) -> (Disposition<SimulatedCall>, SimulatedEntry) {
        var entry = entry
        // An answer to an attempt that is no longer the open one says nothing.
        if case .answer(let answer) = origin, let attempt = entry.attempt, answer.attempt == attempt.number {
            if let disposition = hear(answer.found, of: attempt, &entry) { return (disposition, entry) }
        }
        if let attempt = entry.attempt {
            guard now >= attempt.until else {
                return (.park(reason: "settles", after: attempt.until - now, cause: .planned), entry)
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

    /// - Returns: `nil`: the entry is decided as if nothing had been answered.
    private static func hear(
        _ found: SimulatedAnswer.Found, of attempt: SimulatedEntry.Attempt, _ entry: inout SimulatedEntry
    ) -> Disposition<SimulatedCall>? {
        switch found {
        case .written:
            entry.recorded = attempt.version
            entry.attempt = nil
            return entry.version > entry.recorded ? .again : .finished
        case .notWritten, .notMade:
            entry.attempt = nil
            return .again
        case .unknown: return nil
        case .away:
            entry.attempt = nil
            return .park(reason: "away", after: .seconds(2), cause: .backendAway)
        case .refused:
            entry.attempt = nil
            return .park(reason: "refused", after: .seconds(5), cause: .attempt)
        case .busy(let wait):
            entry.attempt = nil
            return .park(reason: "busy", after: wait, cause: .askedToWait(wait))
        }
    }
}

/// A row of `pipeline.parked`.
struct SimulatedRow {
    var parking: ParkedKeys.Parking
    var nextAt: Instant
}

/// The other system: which versions of entries it was told, how often, and what it will do late.
struct SimulatedOffice {
    var told: [[Int: Int]]
    var late: [(at: Instant, entry: Int, version: Int)] = []

    mutating func write(_ version: Int, of entry: Int) { told[entry][version, default: 0] += 1 }

    mutating func pass(to now: Instant) {
        for work in late where work.at <= now { write(work.version, of: work.entry) }
        late.removeAll { $0.at <= now }
    }
}

/// One partition of a topic: which entries its messages are of, the positions that they tell, and whether a device was
/// there.
struct SimulatedPartition {
    var messages: [(entry: Int, position: Int, isEdit: Bool)] = []
    /// Everything below it was finished by the group.
    var committed = 0
    /// The offset of each entry's last message.
    var last: [Int: Int] = [:]

    mutating func append(_ number: Int, _ entry: SimulatedEntry) {
        last[number] = messages.count
        messages.append((number, entry.position, entry.isEdit))
    }
}

/// A message as the scheduler holds it.
struct SimulatedMessage: Hashable, Sendable {
    let partition: Int
    let offset: Int
    /// Of which assignment it is: what is finished after the partition went away does not count.
    let assignment: Int
}

/// Deliberate mistakes of an engine: each is found.
enum Mistake: String, CaseIterable, CustomTestStringConvertible {
    /// A message is finished when it comes.
    case finishesAtOnce
    /// Offsets are stored up to the highest finished message.
    case finishesAboveUnfinished
    /// What is finished of a partition that went away and came back counts.
    case finishesOfAnEarlierAssignment
    /// An event that comes while its key is called is taken as done.
    case forgetsNewerEvents
    /// A guard that did not hold is taken as one that did.
    case takesMissedAsWritten
    /// What PostgreSQL could not write is taken as written.
    case takesFailedAsWritten
    /// What was being decided when PostgreSQL failed is forgotten.
    case forgetsWhatFailed
    /// Keys that are put aside are let go of before their rows are written.
    case parksWithoutARow
    /// A row goes though its key still waits.
    case removesRowsOfOthers
    /// An answer is not told.
    case losesAnswers
    /// A call is taken from the queue twice.
    case makesACallTwice
    /// A call is made though its decision was taken back.
    case callsWhatWasTakenBack
    /// Parked keys that are due are not decided.
    case forgetsDueKeys
    /// A known event is finished at once, though its key is in flight.
    case finishesKnownEventsAtOnce
    /// An event that is newer than what was decided is taken for known.
    case forgetsNewerPositions
    /// A newer event of a key in flight is taken for one of a service's.
    case forgetsNewerEdits
    /// An event of a key that is parked is taken for what it says alone.
    case forgetsThatKeysAreParked
    /// A worker that stops does not wait for its calls, and finishes all it has.
    case stopsAtOnce

    var testDescription: String { rawValue }
}

struct SimulationFailure: Error, CustomStringConvertible { let description: String }
