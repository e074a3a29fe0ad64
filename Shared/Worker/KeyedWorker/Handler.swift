package import Essentials
package import Model
package import ObjectStore
package import Postgres

/// The processing logic of a service for the keys of its topic. ``Worker`` does the rest: batches, offsets, deferral,
/// retries, the circuit breaker and the concurrency limit of calls.
///
/// Every input is decided from the current state in PostgreSQL, not from the content of the message. Duplicates, late
/// messages and retries are therefore handled alike.
///
/// A handler that calls no other system implements only ``decide(_:in:batch:on:)``: its `Call` and `CallResult` are
/// `Never`.
package protocol Handler: SendableMetatype {
    /// A call to another system, with all its parameters.
    associatedtype Call: Sendable = Never
    /// The result of a call.
    associatedtype CallResult: Sendable = Never

    /// The oldest supported version of the database schema. Defaults to the one that workers need.
    static var schemaOldest: Int32 { get }

    /// Whether the handler finishes keys without loading them if no event is an edit. The worker then looks up which of
    /// them are deferred. Defaults to `false`: in an environment with deferred keys, all events are edits.
    static var skipsUneditedKeys: Bool { get }

    /// Decides inputs of one environment.
    ///
    /// Loads their objects in as few round trips as possible, decides each input by a pure rule, and adds the writes to
    /// `batch`, with the loaded positions as preconditions, as decision number `index` of the input. The worker commits
    /// the batch and reprocesses inputs whose version check failed.
    ///
    /// If a decision expects its input's own object at a position, that expectation comes first. Events up to that
    /// position, or up to the position that the decision writes, are then not processed again. A decision that needs a
    /// further step returns `again`.
    ///
    /// - Returns: The next step of each input, taken after the commit.
    mutating func decide(
        _ inputs: [WorkItem<CallResult>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>]

    /// Returns the function that makes calls for an environment.
    ///
    /// The function runs outside of the worker's thread, in a limited number of slots, and never throws: a failure is a
    /// result. The worker caches it for `WorkerLimits.callerAgeMax`.
    ///
    /// - Throws: `CallerUnavailable` if calls are impossible in this environment: its keys are deferred.
    func caller(on connection: inout Connection, for environment: EnvironmentID) throws
        -> @Sendable (Call) async -> CallResult

    /// The revision of an environment's call settings that the last `decide` read. If it changes, the worker requests a
    /// new `caller`: no call uses settings older than its decision.
    func callerRevision(of environment: EnvironmentID) -> Int64

    /// Rate limits of the environment's calls, loaded together with `caller` and periodically while calls wait.
    func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRateLimits

    /// The result of a call that was decided and then not made. `nil`: the key is reprocessed as a retry.
    func resultWhenSkipped(_ call: Call) -> CallResult?

    /// The kind of a call. A failure counts against its key only while other calls of this kind succeed.
    func kind(of call: Call) -> CallKind
}

extension Handler {
    package static var schemaOldest: Int32 { DeferredKeys.schemaOldest }
    package static var skipsUneditedKeys: Bool { false }
    package func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRateLimits {
        CallRateLimits()
    }
    package func callerRevision(of environment: EnvironmentID) -> Int64 { 0 }
    package func resultWhenSkipped(_ call: Call) -> CallResult? { nil }
    package func kind(of call: Call) -> CallKind { .read }
}

extension Handler where Call == Never, CallResult == Never {
    /// Never called: a `Never` call does not exist.
    package func caller(on connection: inout Connection, for environment: EnvironmentID) throws
        -> @Sendable (Never) async -> Never
    { { (_: Never) async -> Never in } }
}

/// Reads and writes fail independently: a system that answers queries may be unable to write.
package enum CallKind: Sendable { case read, write }

/// Calls are impossible with an environment's current settings. Other environments are not affected.
package struct CallerUnavailable: Error, Equatable {
    package let reason: String
    package init(reason: String) { self.reason = reason }
}

/// A key to decide.
package struct WorkItem<CallResult: Sendable>: Sendable {
    package enum Origin: Sendable {
        /// An event of the topic reported a change.
        case event
        /// The key was deferred and is due.
        case retry
        /// A call of the key has finished.
        case result(CallResult)
    }

    package let environment: EnvironmentID
    package let subject: EventSubject
    package let origin: Origin
    /// Number of failed attempts since the key's last event.
    package let attemptCount: Int
    /// Whether a device or an integration may have changed the object since its last decision, that is, whether one of
    /// the item's events is an edit (its position is the object's edit position). `false`: only decisions of services
    /// wrote it. If a handler's decisions never leave work behind, it may finish such a key without loading it.
    ///
    /// `true` if unknown: for retries, results of calls and reprocessing, and for events of deferred keys.
    package var isEdit = true
    /// Whether the environment's circuit admits calls. Otherwise a decision to call is rolled back with all its writes,
    /// so a result is better recorded without the next call.
    package var canCall = true
    /// The decision's own span, in the trace of the key's newest event. Deferrals and calls keep the trace.
    package var trace: TraceContext?

    package init(environment: EnvironmentID, subject: EventSubject, origin: Origin, attemptCount: Int) {
        self.environment = environment
        self.subject = subject
        self.origin = origin
        self.attemptCount = attemptCount
    }

    var isAnswer: Bool { if case .result = origin { true } else { false } }
}

/// The next step of a key after its decision is committed.
package enum Disposition<Call: Sendable>: Sendable {
    /// No work is left.
    case finished
    /// Reprocess the key from the then current state: one step is complete, others may follow.
    case reprocess
    /// Make the call. If it has not started before `startBefore`, the key is reprocessed.
    case call(Call, startBefore: ContinuousClock.Instant)
    /// Defer the key and retry later. Other keys are not delayed.
    case deferred(reason: String, after: Duration, cause: DeferralCause)
    /// Dead-letter the key: it needs manual action or a newer event.
    case deadLettered(reason: String)

    var isCall: Bool { if case .call = self { true } else { false } }

    func map<Other: Sendable>(_ transform: (Call) -> Other) -> Disposition<Other> {
        switch self {
        case .finished: .finished
        case .reprocess: .reprocess
        case .call(let call, let startBefore): .call(transform(call), startBefore: startBefore)
        case .deferred(let reason, let after, let cause): .deferred(reason: reason, after: after, cause: cause)
        case .deadLettered(let reason): .deadLettered(reason: reason)
        }
    }
}

/// The reason why a key is deferred; it determines whether an attempt counts.
package enum DeferralCause: Sendable, Equatable {
    /// The key was tried and temporarily rejected: an attempt counts.
    case attempt
    /// The other system was unavailable: recorded by the circuit breaker. `WorkScheduler.deferral` decides whether an
    /// attempt counts.
    case backendUnavailable
    /// The other system requested a pause of this duration for all keys (Retry-After). No attempt counts.
    ///
    /// Excludes the key's own wait, such as the settle time of an unknown outcome.
    case retryAfter(Duration)
    /// A planned wait, such as the settle time of an unknown outcome. No attempt counts.
    case planned

    /// The cause for an unavailable system, which may have requested a pause (Retry-After).
    package static func unavailable(retryAfter wait: Duration?) -> DeferralCause {
        wait.map { .retryAfter($0) } ?? .backendUnavailable
    }

    /// The reason of a key that waits for a free slot. Such keys become due early when slots are free.
    package static let noFreeSlot = "waits for a free call slot"
}
