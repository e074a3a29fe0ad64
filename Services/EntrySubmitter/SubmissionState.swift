import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// What an entry is to be in the back end, with the fields it was made from.
struct Wanted: Codable, Equatable, Sendable {
    var day: Day
    var durationSeconds: Int
    var text: String?
    var references: [String: String]
    /// The device's fields, to be restored when a later edit is refused.
    var fields: TimeEntry
    /// The state of its delivery; `nil` if it may have been sent and the outcome is unknown.
    var delivery: Delivery?

    enum Delivery: String, Codable, Sendable {
        /// Not sent: its record is looked up after a restore, and may be older.
        case unsent
        /// The back end acknowledged the write, and returned the record's id.
        case acknowledged
    }

    /// Whether the back end's record says the same.
    func matches(_ record: BackendEntry) -> Bool {
        (record.text ?? "") == (text ?? "") && matchesExceptText(record)
    }

    func matchesExceptText(_ record: BackendEntry) -> Bool {
        record.day == day && Hours(seconds: record.durationSeconds) == Hours(seconds: durationSeconds)
            && hasReferences(of: record)
    }

    /// Whether the record is about the same, as far as it says.
    func hasReferences(of record: BackendEntry) -> Bool {
        record.references.allSatisfy { references[$0.key] == $0.value }
    }

    /// Whether both ask the back end for the same record.
    func isSameRecord(as other: Wanted) -> Bool {
        day == other.day && durationSeconds == other.durationSeconds && (text ?? "") == (other.text ?? "")
            && references == other.references
    }

    func differsOnlyInText(from other: Wanted) -> Bool {
        day == other.day && Hours(seconds: durationSeconds) == Hours(seconds: other.durationSeconds)
            && references == other.references
    }
}

/// What is known of an entry's submission: the row of `submission.ledger`.
struct Ledger: Equatable, Sendable {
    enum Phase: String, Sendable {
        /// A call may be under way.
        case open
        /// The back end is being asked what became of an attempt.
        case finding
        /// Nobody knows whether the call did anything.
        case unknown
        /// Nothing is open.
        case settled
    }
    enum Operation: String, Sendable { case create, update, delete }

    var version: Int64 = 0
    var phase = Phase.settled
    var operation = Operation.create
    /// The edit that was handled or is being handled. 0: none, so whatever is asked for is begun anew.
    var editPosition: Int64 = 0
    /// Until the lease ends (open) or the outcome has settled (unknown); not positive when that is over.
    var leaseRemaining = Duration.zero
    var backendID: String?
    var wanted: Wanted?
    var confirmed: Confirmed?
    /// Time of the newest status log line, milliseconds since 1970.
    var loggedAt: Int64 = 0
}

/// What the back end is known to hold.
struct Confirmed: Codable, Equatable, Sendable {
    var wanted: Wanted
    var status: EntryStatus
    /// The entry as it was sent, if the back end altered it: the same is not sent again.
    var sent: Wanted?
}

/// All that a decision about an entry is made from.
struct SubmissionState: Sendable {
    enum Entry: Sendable {
        case missing
        case tombstone
        case live(TimeEntry, editPosition: Int64)
    }

    var entry: Entry
    var ledger: Ledger?
    /// What keeps the entry from being submitted; made from the person's own reporting data.
    var problems: [String] = []
    /// The entry as it is to be in the back end; `nil` when there are problems.
    var wanted: Wanted?
    /// Whether `problems` and `wanted` were made. The rule says `check` where it needs them: most answers do not.
    var isChecked = true
    /// The id is that of an entry of another realm, which the back end may have a record of. `ledger` is `nil` then.
    var isAnothers = false
    /// Another entry has the ledger's record too: the record is not deleted with this entry.
    var isRecordShared = false
    /// The back end's status was written after the last edit, and the ledger that tells of it is lost.
    var isAnswered = false
    /// How long ago the database was restored, when it may have lost that the entry was sent: the back end is asked
    /// before it is created.
    var sinceRestore: Duration?
    /// The back end has no such person: a mistake in the set-up, not in the entry.
    var isPersonUnknown = false
    /// The back end may be called now.
    var canCall = true
    /// The person's choices for reporting; read only where a record that was read back refers to
    /// something else than was sent.
    var objects = ReportingObjects()
}

/// What is still to be done about an entry, beside what was handled.
///
/// `submitRequested` says whether the entry is to be in the back end. Where it was never said, an edit of an entry that
/// the back end has, such as an integration's, is a request to change the record.
enum EntryRequest: Equatable, Sendable {
    case none
    case submission
    /// The record is to go, and the entry to be a draft again.
    case withdrawal
    case deletion

    init(_ entry: SubmissionState.Entry, handled ledger: Ledger) {
        switch entry {
        case .missing: self = .none
        case .tombstone: self = ledger.backendID == nil ? .none : .deletion
        case .live(let entry, let editPosition):
            if entry.deleteRequested == true {
                self = .deletion
            } else if editPosition <= ledger.editPosition || entry.status.isClosed {
                self = .none
            } else {
                switch entry.submitRequested {
                case true?: self = .submission
                case nil: self = entry.status.isHandedIn && ledger.backendID != nil ? .submission : .none
                case false?:
                    let isThere = entry.status.isHandedIn || entry.status == .invalid && ledger.backendID != nil
                    self = isThere ? .withdrawal : .none
                }
            }
        }
    }
}

/// A database that has lost its last transactions, and with them what they said of submissions.
struct Restore: Equatable, Sendable {
    /// Entries of the days up to this one may have been sent by what is lost.
    let throughDay: Day
    /// How long ago it was.
    let since: Duration
}

extension SubmissionState {
    /// A ledger that knows of an open attempt is believed; others may be older than what was sent.
    mutating func note(_ restore: Restore?) {
        guard let restore, let wanted, wanted.day <= restore.throughDay else { return }
        if (ledger?.phase ?? .settled) == .settled { sinceRestore = restore.since }
    }
}

/// What a call to the back end found.
enum SubmissionAnswer: Equatable, Sendable {
    /// The one record, as it was read back.
    case record(BackendEntry)
    /// A write was refused, since this record has taken the place of the one that it named.
    case successor(BackendEntry)
    /// No record: never written, or gone.
    case absent
    /// Several records carry the entry's marker.
    case ambiguous(count: Int)
    /// The back end looked at it and refuses it.
    case refused([String])
    /// It did nothing, and may do it later.
    case notProcessed(reason: String, retryAfter: Duration?)
    /// It may have done it. `recordID` when it said under which id.
    case unknown(reason: String, recordID: String?, retryAfter: Duration? = nil)
    /// It was not asked after all.
    case notMade
}

/// A call for the version of the ledger that opened it.
struct SubmissionCall: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        case create(Wanted)
        case update(id: String, Wanted)
        case delete(id: String)
        /// Looks for the record of an attempt of unknown outcome: by its id where one is known, else by the marker.
        case find(id: String?, days: [Day])
    }
    var action: Action
    var version: Int64
}

/// What is to be written, and what happens next.
struct SubmissionDecision: Equatable, Sendable {
    enum EntryChange: Equatable, Sendable {
        case patch(EntryPatch)
        /// An entry that was made in the back end.
        case put(TimeEntry)
        case tombstone
    }
    enum Step: Equatable, Sendable {
        case finished
        /// The entry asks for something else by now: it is decided again.
        case again
        /// It depends on what the person can report on: nothing is written, and it is decided with
        /// `SubmissionState.isChecked`.
        case check
        case call(SubmissionCall)
        case park(reason: String, after: Duration, cause: ParkCause)
        case dead(reason: String)
    }
    struct LogLine: Equatable, Sendable {
        var status: EntryStatus
        var message: String?
        var code: TimeEntryStatus.Code?

        static let recordGone = LogLine(
            status: .invalid, message: "The back end no longer has this entry; submit it again", code: .recordGone)
    }

    /// The ledger as it is to be, with a version one above the loaded one; `nil` leaves it.
    var ledger: Ledger?
    /// How long the lease or the settling lasts from the commit on.
    var lease = Duration.zero
    var entry: EntryChange?
    var log: [LogLine] = []
    /// The entry is gone for good: its ledger row and its status log go too.
    var forgets = false
    var step: Step
}

/// The fields of an entry that the submitter writes.
struct EntryPatch: Equatable, Sendable {
    var status: EntryStatus?
    var backendID: String??
    /// `false` takes a request to delete back.
    var deleteRequested: Bool?
    /// `true` takes a withdrawal back.
    var submitRequested: Bool?
    /// Values of the back end that replace a refused edit.
    var restored: TimeEntry?
    /// The time of the newest line of the status log.
    var statusAt: Timestamp?
}

extension EntryPatch {
    /// An entry as the patch leaves it.
    func applied(to entry: TimeEntry) -> TimeEntry {
        var entry = entry
        if let restored {
            entry.text = restored.text
            entry.reportingTemplate = restored.reportingTemplate
            entry.reporting = restored.reporting
            entry.timeType = restored.timeType
            entry.entryDate = restored.entryDate
            entry.startTime = restored.startTime
            entry.endTime = restored.endTime
            entry.durationSeconds = restored.durationSeconds
        }
        if let status { entry.status = status }
        if let backendID { entry.backendId = backendID }
        if let deleteRequested { entry.deleteRequested = deleteRequested }
        if let submitRequested { entry.submitRequested = submitRequested }
        if let statusAt { entry.statusAt = statusAt }
        return entry
    }
}
