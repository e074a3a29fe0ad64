package import Essentials
package import Model
package import ObjectStore
package import Postgres

/// What a service does with the keys of its topic. The worker around it does the rest: batches, offsets, parking,
/// retries, the circuit breaker and the window of calls.
///
/// Every input is decided from what PostgreSQL holds now, not from what the message said: so a repeat, a late message
/// and a retry are all the same.
///
/// One that calls no other system has ``decide(_:in:batch:on:)`` and nothing else: its calls and their answers are
/// `Never`, which there is none of.
package protocol Handler: SendableMetatype {
    /// A call to another system, with all it needs.
    associatedtype Call: Sendable = Never
    /// What came of a call.
    associatedtype Answer: Sendable = Never

    /// The oldest version of the database's schema that it works with.
    static var schemaOldest: Int32 { get }

    /// Decides inputs of one environment.
    ///
    /// Loads what they concern in as few round trips as possible, decides each by a pure rule, and adds what was
    /// decided to `batch`, guarded by the positions that were loaded, as decision number `index` of the input. The
    /// worker commits the batch; an input whose guard missed comes again.
    ///
    /// The first object that a decision expects at a position is the one that its input is about, when it expects that
    /// one. An event of that position, or of what the decision wrote of it, is not decided any more: a decision that is
    /// not the last says `again`.
    ///
    /// - Returns: What happens next with each input, once its writes are committed.
    mutating func decide(
        _ inputs: [WorkItem<Answer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>]

    /// How a call is made. It runs outside the worker's thread, in a bounded window, and never throws: what went wrong
    /// is an answer too. It is kept for a short while and then made anew.
    ///
    /// - Throws: `CallerUnavailable` when it cannot be made for this environment: its calls wait then.
    func caller(on connection: inout Connection, for environment: EnvironmentID) throws
        -> @Sendable (Call) async -> Answer

    /// Which edit of how an environment's calls are made the last `decide` saw: after another one than before, `caller`
    /// is asked anew. So a call is never made as things were before what it was decided from.
    func callerRevision(of environment: EnvironmentID) -> Int64

    /// How fast it may be called. Asked for as often as `caller`, and while calls wait.
    func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRates

    /// The answer of a call that was decided and not made after all. `nil`: the key is decided again as if it came
    /// from a retry.
    func unmade(_ call: Call) -> Answer?

    /// What a call does: a failure is held against its key only while others are answered the same.
    func kind(of call: Call) -> CallKind
}

extension Handler {
    package static var schemaOldest: Int32 { Schema.oldest }
    package func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRates {
        CallRates()
    }
    package func callerRevision(of environment: EnvironmentID) -> Int64 { 0 }
    package func unmade(_ call: Call) -> Answer? { nil }
    package func kind(of call: Call) -> CallKind { .read }
}

extension Handler where Call == Never, Answer == Never {
    /// It is never asked for: there is no call to make.
    package func caller(on connection: inout Connection, for environment: EnvironmentID) throws
        -> @Sendable (Never) async -> Never
    { { (_: Never) async -> Never in } }
}

/// Another system that answers questions need not be able to write.
package enum CallKind: Sendable { case read, write }

/// One environment's other system cannot be called as things are set up. The other environments go on.
package struct CallerUnavailable: Error, Equatable {
    package let reason: String
    package init(reason: String) { self.reason = reason }
}

/// A key to decide about.
package struct WorkItem<Answer: Sendable>: Sendable {
    package enum Origin: Sendable {
        /// An event of the topic said that it changed.
        case event
        /// It was parked and is due.
        case retry
        /// A call it waited for is over.
        case answer(Answer)
    }

    package let environment: EnvironmentID
    package let subject: EventSubject
    package let origin: Origin
    /// How often it was tried without success since its last event.
    package let attemptCount: Int
    /// Whether a device or an integration may have changed it since it was decided last: one of the events that the
    /// item stands for is an edit (its position is the object's edit position). `false`: decisions of services wrote
    /// all of it. A decider whose decisions look at everything and leave nothing to be done is done with such a key
    /// without loading it.
    ///
    /// Where that is not known it is an edit: of what comes from a retry, from a call, or from one more try, and of
    /// every event in an environment in which keys of the group are parked, since it may be of one of these.
    package var isEdit = true
    /// The environment's circuit lets calls be made. When not, a decision to make one is taken back with all that it
    /// writes: what an answer has told is then better written without it.
    package var canCall = true
    /// The trace that the decision belongs to, with a span of its own: that of the key's newest event, also when it was
    /// parked or called since.
    package var trace: TraceContext?

    package init(environment: EnvironmentID, subject: EventSubject, origin: Origin, attemptCount: Int) {
        self.environment = environment
        self.subject = subject
        self.origin = origin
        self.attemptCount = attemptCount
    }

    var isAnswer: Bool { if case .answer = origin { true } else { false } }
}

/// What happens with a key once what was decided is committed.
package enum Disposition<Call: Sendable>: Sendable {
    /// Nothing is left to do.
    case finished
    /// It is decided once more, from what is written by then: one step is over, and may not be the last.
    case again
    /// The other system is called, before `startBefore` or not at all: then the key is decided again.
    case call(Call, startBefore: ContinuousClock.Instant)
    /// Not now. Other keys go on.
    case park(reason: String, after: Duration, cause: ParkCause)
    /// Not without a person.
    case dead(reason: String)

    var isCall: Bool { if case .call = self { true } else { false } }

    func map<Other: Sendable>(_ transform: (Call) -> Other) -> Disposition<Other> {
        switch self {
        case .finished: .finished
        case .again: .again
        case .call(let call, let startBefore): .call(transform(call), startBefore: startBefore)
        case .park(let reason, let after, let cause): .park(reason: reason, after: after, cause: cause)
        case .dead(let reason): .dead(reason: reason)
        }
    }
}

/// Why a key waits.
package enum ParkCause: Sendable, Equatable {
    /// The key was tried and refused for now: it counts against its attempts.
    case attempt
    /// The other system could not work: the circuit breaker hears of it. It counts as far as it may be the key's own
    /// fault: see `WorkScheduler.parking`.
    case backendAway
    /// The other system asked not to be called for that long, by whatever key. It does not count.
    ///
    /// What the key waits for beside that, such as a settling outcome, is no other key's concern: so this is only what
    /// was asked for.
    case askedToWait(Duration)
    /// A wait that belongs to the plan, such as letting an unknown outcome settle: it does not count.
    case planned

    /// The other system could not work, and perhaps said for how long it is to be left alone.
    package static func away(askingFor wait: Duration?) -> ParkCause { wait.map { .askedToWait($0) } ?? .backendAway }

    /// The reason of a wait for room: what has it comes back early when there is some.
    package static let noRoom = "other calls come first"
}
