import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// What a decision about a command is made from.
struct CommandState: Equatable, Sendable {
    enum Command: Equatable, Sendable {
        case missing, tombstone
        case live(DefectCommand)
    }

    var command: Command
    /// The command's own row of the ledger.
    var attempt: Attempt?
    /// Neither an earlier command of its person nor one of somebody else's is to be done with the record first.
    var hasTurn = true
    /// Why the tracker cannot be asked as the command's person; `nil`: it can.
    var objection: String?
    /// The attempt is of a tracker that the environment does not have any more.
    var isTrackerAnother = false
    /// Whether what was begun may have saved something.
    var mayBeSaved: Bool {
        guard attempt?.record != nil else { return false }
        if case .live(let command) = command { return command.operation != .choices }
        return true
    }

    /// Calls can be made now: a decision to make one is taken back else, with all that it writes.
    var canCall = true
}

/// A row of the ledger: what is being done with a record. It is there from before the first call.
struct Attempt: Equatable, Sendable {
    /// Another one with each call.
    var call: UUID
    /// The tracker's id of the record; `nil`: a new one that has none, so that nothing of it can be saved.
    var record: String?
    /// Calls of it may be under way for so long.
    var leaseRemaining = Duration.zero
}

/// What is to be asked of the tracker.
enum CommandAction: Equatable, Sendable {
    /// A new record is begun, which nobody sees before it is committed.
    case begin(DefectCommand)
    /// A command is carried out with a record.
    ///
    /// - Parameters:
    ///   - isNew: The record was begun for it.
    ///   - isUncertain: It was tried before, and nobody knows how that ended: its edit session may be open.
    ///   - mandatory: Of a new record, the fields that must have a value, with those that they have.
    case carryOut(DefectCommand, record: String, isNew: Bool, isUncertain: Bool, mandatory: [String: String] = [:])
    /// The edit session of a command that is gone is ended.
    case revert(record: String)

    /// Whether something may be left of it when it is not made.
    var leavesSomething: Bool {
        switch self {
        case .begin: false
        case .carryOut(_, _, let isNew, let isUncertain, _): isNew || isUncertain
        case .revert: true
        }
    }
}

/// What the tracker said.
enum CommandAnswer: Equatable, Sendable {
    /// A new record has this id, and these fields must have a value, with those that they have.
    case begun(record: String, mandatory: [String: String])
    case done(record: String)
    case choices([String: [String]], messages: [String] = [])
    case refused([String])
    case conflict([String])
    /// It was tried before, and the record is neither as it was nor as it was to be.
    case unclear([String])
    /// Somebody else's commit was faster, and concerns other fields: it can be begun again.
    case overtaken
    /// A new record that was begun before was never saved, nor will be.
    case neverSaved
    /// The session is ended.
    case reverted
    /// Nothing was done, and nothing is left of it.
    case notProcessed(reason: String, retryAfter: Duration?)
    /// It may have been done, and a session may be open.
    case unknown(reason: String, retryAfter: Duration?)
    /// The tracker does not let the person in.
    ///
    /// - Parameter isUncertain: It may have been done before that.
    case unauthorized(reason: String, isUncertain: Bool)
    /// The call was not made after all.
    case notMade(isUncertain: Bool)
}

/// What is done with a command.
struct CommandDecision: Equatable, Sendable {
    enum Ledger: Equatable, Sendable {
        case unchanged
        /// The row gets this record, another number of its call, and this lease.
        case keep(record: String?, lease: Duration)
        case forget
    }

    /// What came of a command.
    struct Outcome: Equatable, Sendable {
        var status: DefectCommand.Status
        var messages: [String] = []
        var record: String?
        var choices: [String: [String]]?
    }

    enum Step: Equatable, Sendable {
        case finished, again
        case call(CommandAction)
        case park(reason: String, after: Duration, cause: ParkCause)
    }

    var ledger = Ledger.unchanged
    var outcome: Outcome?
    /// The person's login is known to be refused, and why.
    var loginRefused: String?
    var step: Step
}
