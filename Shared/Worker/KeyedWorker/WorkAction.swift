import Kafka
import Model

/// A key of a worker. At most one task per key is in flight.
struct WorkKey: Hashable, Sendable {
    let environment: EnvironmentID
    let subject: EventSubject
}

/// The scheduler's view of a call.
protocol ScheduledCall: Sendable {
    associatedtype CallResult: Sendable
    var kind: CallKind { get }
    /// The result if the call is not made. `nil`: its key is reprocessed.
    var resultWhenSkipped: CallResult? { get }
}

/// A key to decide, with the partition it came from.
struct ScheduledItem<CallResult: Sendable>: Sendable {
    var item: WorkItem<CallResult>
    let partition: TopicPartition
    /// For a result: whether the call was made.
    var wasCalled = true
    /// Start of the call whose slot the result occupies until a cycle takes it.
    var slotSince: ContinuousClock.Instant?

    var key: WorkKey { WorkKey(environment: item.environment, subject: item.subject) }
}

/// A call that is in flight.
struct StartedCall<Call: ScheduledCall>: Sendable {
    let key: WorkKey
    let call: Call
    /// Start deadline of the call.
    let startBefore: ContinuousClock.Instant
    let startedAt: ContinuousClock.Instant
}

/// The next action of a worker. The worker reports the result to its scheduler.
enum WorkAction<Message: Sendable, Call: ScheduledCall>: Sendable {
    /// The keys of these messages are done: their offsets may be stored.
    case finish([Message])
    /// Start calls; `ended` follows for each.
    case start([StartedCall<Call>])
    /// Log an event for operators.
    case log(SchedulerLogEvent)
    /// Poll for at most `countMax` messages; `received` follows for each.
    ///
    /// - `countMax` 0: no capacity. The wakeup ends the wait early.
    /// - `isPaused`: poll with paused partitions, so that the worker stays a member of its group.
    case take(countMax: Int, waitMax: Duration, isPaused: Bool)
    /// Take due deferred keys; `expedited` and `due` follow.
    case takeDue(DueRequest)
    /// A handler decides these items of one environment. Before, `decideAsEdits` receives the keys of
    /// `possiblyDeferred` that are deferred. Then `plan`, and `committed`, `rejected`, `locked` or `failed`.
    case decide([ScheduledItem<Call.CallResult>], in: EnvironmentID)
    /// Defer these keys in PostgreSQL without a decision; then `deferred` or `failed`.
    case deferKeys([DeferredKeys.Deferral], in: EnvironmentID)
    /// Wait for results: no other action is possible.
    case wait(Duration)
}

/// A request for due deferred keys.
struct DueRequest: Equatable, Sendable {
    /// Maximum per environment, so that a backlog of one does not delay others.
    let countMax: Int
    /// Maximum of all environments together.
    let roomMax: Int
    /// Lower limits of some environments.
    let exceptions: [EnvironmentID: Int]
    /// Maximum number of keys, by environment, that wait for a free slot and become due early.
    let expedited: [EnvironmentID: Int]
}

/// An event that is logged for operators.
enum SchedulerLogEvent: Equatable, Sendable {
    case backendUnavailable(EnvironmentID, reason: String)
    case backoffRequested(EnvironmentID, reason: String, retryAfter: Duration)
    case backendRecovered(EnvironmentID)
    case keyDeadLettered(WorkKey, reason: String)
    case locked(EnvironmentID, reason: String, isLong: Bool)
    case unlocked(EnvironmentID)
}

/// The writes of a batch of decisions, and the steps that follow their commit.
struct WorkPlan<Call: ScheduledCall>: Sendable {
    let items: [ScheduledItem<Call.CallResult>]
    var dispositions: [Disposition<Call>]
    /// Decisions that are rolled back with all their writes, because their calls cannot be made now.
    var withheld: Set<Int> = []
    /// By decision number; a decision that is rolled back has another number of its own.
    var deferrals: [DeferredKeys.Deferral] = []
    /// Keys that are no longer deferred, with their decision number.
    var released: [(key: String, decision: Int)] = []
}
