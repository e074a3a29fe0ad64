import Compass
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// The state that a decision about a command is based on.
struct CommandState: Equatable, Sendable {
    enum Command: Equatable, Sendable {
        case missing, tombstone
        case live(DefectCommand)
    }

    var command: Command
    /// The command's own row of the ledger.
    var attempt: Attempt?
    /// Whether no other command must be performed first: neither an earlier one of the same person nor another person's
    /// in progress.
    var isNextForRecord = true
    /// Why the tracker cannot be called with the person's login; `nil`: it can.
    var rejectionReason: String?
    /// Whether the attempt belongs to an earlier tracker of the environment.
    var hasTrackerChanged = false
    /// Whether the attempt may have saved something.
    var mayBeSaved: Bool {
        guard attempt?.record != nil else { return false }
        if case .live(let command) = command { return !command.operation.isReading }
        return true
    }

    /// Whether calls can be made now. Otherwise a decision to make one is discarded with its writes.
    var canCall = true
}

/// A row of the ledger: the attempt that owns a record. It exists from before the first call.
struct Attempt: Equatable, Sendable {
    /// The id of the call; a new one for each call.
    var call: UUID
    /// The tracker's id of the record; `nil`: a new record without an id, under which nothing can be saved.
    var record: String?
    /// Time during which its calls may be in progress.
    var leaseRemaining = Duration.zero
}

/// A read that needs no edit session.
enum DetailRequest: Equatable, Sendable {
    case record(String)
    /// A folder of the workspace; `nil`: its roots.
    case folder(String?)
    /// The rows of a query from `first` on, counted from 0.
    case rows(query: String, first: Int)
}

/// A call to the tracker.
enum CommandAction: Equatable, Sendable {
    /// Reads without an edit session.
    case read(DetailRequest)
    /// Opens a new record, which is invisible until it is committed.
    case openNew(DefectCommand)
    /// Performs a command with a record.
    ///
    /// - Parameters:
    ///   - isNew: Whether the record was opened for the command.
    ///   - isUncertain: Whether an earlier attempt has an unknown outcome; its edit session may be open.
    ///   - session: A new record as it is in its session.
    case perform(DefectCommand, record: String, isNew: Bool, isUncertain: Bool, session: Record? = nil)
    /// Ends the edit session of a deleted command.
    case revert(record: String)

    /// Whether an earlier call may have had effects if this one is not made.
    var mayHaveEffects: Bool {
        switch self {
        case .read, .openNew: false
        case .perform(_, _, let isNew, let isUncertain, _): isNew || isUncertain
        case .revert: true
        }
    }
}

/// The result of a `CommandAction`.
enum ActionResult: Equatable, Sendable {
    /// A new record has this id; `session` is the record as it is in its session.
    case opened(record: String, session: Record)
    case done(record: String)
    case choices([String: [String]], messages: [String] = [])
    case detail(DefectDetail, messages: [String] = [])
    case refused([String])
    /// - Parameter detail: The record as it is now.
    case conflict([String], detail: DefectDetail? = nil)
    /// An earlier attempt has an unknown outcome, and the record has neither the base nor the desired values.
    case ambiguous([String])
    /// Another user's commit was faster, and concerns other fields: the command can be retried.
    case concurrentCommit
    /// A new record of an earlier attempt was never saved, and will not be.
    case neverSaved
    /// The session is ended.
    case reverted
    /// Nothing was done, and no session is open.
    case notProcessed(reason: String, retryAfter: Duration?)
    /// It may have been done, and a session may be open.
    case unknown(reason: String, retryAfter: Duration?)
    /// The tracker rejects the person's login.
    ///
    /// - Parameter isUncertain: Whether an earlier attempt may have been successful.
    case unauthorized(reason: String, isUncertain: Bool)
    /// The call was not sent.
    case notSent(isUncertain: Bool)
}

/// A decision about a command.
struct CommandDecision: Equatable, Sendable {
    enum Ledger: Equatable, Sendable {
        case unchanged
        /// Saves the row with this record and lease, and a new call id.
        case save(record: String?, lease: Duration)
        case remove
    }

    /// The outcome of a command.
    struct Outcome: Equatable, Sendable {
        var status: DefectCommand.Status
        var messages: [String] = []
        var record: String?
        var choices: [String: [String]]?
        var detail: DefectDetail?
    }

    enum Step: Equatable, Sendable {
        case finished, reprocess
        case call(CommandAction)
        case deferred(reason: String, after: Duration, cause: DeferralCause)
    }

    var ledger = Ledger.unchanged
    var outcome: Outcome?
    /// The tracker's reason if it rejects the person's login.
    var loginRejection: String?
    var step: Step
}
