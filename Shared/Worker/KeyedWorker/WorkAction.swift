import Kafka
import Model

/// A key of a worker: what is in one pair of hands at a time.
struct WorkKey: Hashable, Sendable {
    let environment: EnvironmentID
    let subject: EventSubject
}

/// A call as the scheduler sees it.
protocol ScheduledCall: Sendable {
    associatedtype Answer: Sendable
    var kind: CallKind { get }
    /// What is answered when it is not made after all. `nil`: its key is decided again.
    var unmade: Answer? { get }
}

/// A key to decide about, with where it came from.
struct ScheduledItem<Answer: Sendable>: Sendable {
    var item: WorkItem<Answer>
    let partition: TopicPartition
    /// The answer, if it is one, is that of a call that was made.
    var wasCalled = true
    /// Since when its call keeps a place, which is free once a round takes the answer up.
    var placeSince: ContinuousClock.Instant?

    var key: WorkKey { WorkKey(environment: item.environment, subject: item.subject) }
}

/// A call that is under way from now on.
struct StartedCall<Call: ScheduledCall>: Sendable {
    let key: WorkKey
    let call: Call
    /// It is not made any more from then on.
    let startBefore: ContinuousClock.Instant
    let begunAt: ContinuousClock.Instant
}

/// What a worker does next: its scheduler says so, and hears what came of it.
enum WorkAction<Message: Sendable, Call: ScheduledCall>: Sendable {
    /// The keys of these messages are done with: their offsets may be stored.
    case finish([Message])
    /// Calls are made; each is told by `ended`.
    case start([StartedCall<Call>])
    /// Something that operators read.
    case note(WorkNote)
    /// Messages are taken, at most so many; each is told by `received`.
    ///
    /// - `countMax` 0: there is no room. The wait ends early when the wakeup is signalled.
    /// - `isPaused`: Kafka is not to deliver meanwhile, and to know that the worker is alive.
    case take(countMax: Int, waitMax: Duration, isPaused: Bool)
    /// Parked keys that are due are taken; told by `hastened` and `due`.
    case takeDue(DueRequest)
    /// A handler decides these items of one environment; then `plan`, and `committed`, `refused`, `locked` or `failed`.
    case decide([ScheduledItem<Call.Answer>], in: EnvironmentID)
    /// These keys are put down in PostgreSQL without a decision; then `parked` or `failed`.
    case park([ParkedKeys.Parking], in: EnvironmentID)
    /// Nothing can be done but waiting for answers.
    case wait(Duration)
}

/// Which parked keys are taken.
struct DueRequest: Equatable, Sendable {
    /// Of each environment, so that a backlog of one is in nobody else's way.
    let countMax: Int
    /// Of all together.
    let roomMax: Int
    /// Environments of which fewer are taken.
    let exceptions: [EnvironmentID: Int]
    /// Environments whose keys that wait for room come back before their time, at most so many.
    let hastened: [EnvironmentID: Int]
}

/// What operators read.
enum WorkNote: Equatable, Sendable {
    case backendAway(EnvironmentID, reason: String)
    case leftAlone(EnvironmentID, reason: String, asked: Duration)
    case backAgain(EnvironmentID)
    case keyWaitsForAPerson(WorkKey, reason: String)
    case locked(EnvironmentID, reason: String)
    case unlocked(EnvironmentID)
}

/// What is written of a batch of decisions, and what follows once it is.
struct WorkPlan<Call: ScheduledCall>: Sendable {
    let items: [ScheduledItem<Call.Answer>]
    var dispositions: [Disposition<Call>]
    /// Decisions that are taken back with all that they write: their calls cannot be made now.
    var withheld: Set<Int> = []
    /// Under the number of the decision; of one that is taken back, under a number of its own.
    var parkings: [ParkedKeys.Parking] = []
    /// Keys that wait no longer, with the number of the decision.
    var released: [(key: String, decision: Int)] = []
}
