import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// The desired record of an entry in the back end, with the fields it was derived from.
struct DesiredRecord: Codable, Equatable, Sendable {
    var day: Day
    var durationSeconds: Int
    var text: String?
    var references: [String: String]
    /// The entry's fields, which are restored if a later edit is refused.
    var fields: TimeEntry
    /// The state of its delivery; `nil` if it may have been sent and the outcome is unknown.
    var delivery: Delivery?

    enum Delivery: String, Codable, Sendable {
        /// Not sent: after a restore the record is looked up, and may be older.
        case unsent
        /// The back end acknowledged the write, and returned the record's id.
        case acknowledged
    }

    /// Returns whether the back end's record has the same values.
    func matches(_ record: BackendEntry) -> Bool {
        (record.text ?? "") == (text ?? "") && matchesExceptText(record)
    }

    func matchesExceptText(_ record: BackendEntry) -> Bool {
        record.day == day && Hours(seconds: record.durationSeconds) == Hours(seconds: durationSeconds)
            && hasReferences(of: record)
    }

    /// Returns whether the record has the same references, as far as it has any.
    func hasReferences(of record: BackendEntry) -> Bool {
        record.references.allSatisfy { references[$0.key] == $0.value }
    }

    /// Returns whether both describe the same record.
    func isSameRecord(as other: DesiredRecord) -> Bool {
        day == other.day && durationSeconds == other.durationSeconds && (text ?? "") == (other.text ?? "")
            && references == other.references
    }

    func differsOnlyInText(from other: DesiredRecord) -> Bool {
        day == other.day && Hours(seconds: durationSeconds) == Hours(seconds: other.durationSeconds)
            && references == other.references
    }
}

/// The state of an entry's submission: the row of `submission.ledger`.
struct Ledger: Equatable, Sendable {
    enum Phase: String, Sendable {
        /// A call may be in flight.
        case open
        /// A lookup of an attempt's outcome may be in flight.
        case finding
        /// The outcome of the call is unknown.
        case unknown
        /// No attempt is open.
        case settled
    }
    enum Operation: String, Sendable { case create, update, delete }

    var version: Int64 = 0
    var phase = Phase.settled
    var operation = Operation.create
    /// The edit that was or is being handled. 0: none, so any request is started again.
    var editPosition: Int64 = 0
    /// Time until the lease ends (open) or the outcome has settled (unknown); not positive afterwards.
    var leaseRemaining = Duration.zero
    var backendID: String?
    var desired: DesiredRecord?
    var confirmed: Confirmed?
    /// Time of the newest status log line, milliseconds since 1970.
    var loggedAt: Int64 = 0
}

/// The confirmed content of the back end's record.
struct Confirmed: Codable, Equatable, Sendable {
    var desired: DesiredRecord
    var status: EntryStatus
    /// The entry as it was sent, if the back end altered it: the same values are not sent again.
    var sent: DesiredRecord?

    private enum CodingKeys: String, CodingKey {
        case desired = "wanted"
        case status, sent
    }
}

/// The input of a decision about an entry.
struct SubmissionState: Sendable {
    enum Entry: Sendable {
        case missing
        case tombstone
        case live(TimeEntry, editPosition: Int64)
    }

    var entry: Entry
    var ledger: Ledger?
    /// Problems that prevent the submission, determined from the person's own reporting data.
    var problems: [String] = []
    /// The desired record; `nil` if there are problems.
    var desired: DesiredRecord?
    /// Whether `problems` and `desired` were determined. The rule returns `validate` if it needs them, which is rare
    /// for results.
    var isValidated = true
    /// Whether the id is that of an entry of another realm, which the back end may have a record of. `ledger` is then
    /// `nil`.
    var isForeignID = false
    /// Whether another entry has the ledger's record too. The record is then not deleted with this entry.
    var isRecordShared = false
    /// Whether a status of the back end was written after the last edit, and the ledger with its origin is lost.
    var isLedgerLost = false
    /// Time since the database was restored, if the restore may have lost that the entry was sent. The record is then
    /// looked up before it is created.
    var sinceRestore: Duration?
    /// Whether the back end has no such person: an error of the configuration, not of the entry.
    var isPersonUnknown = false
    /// Whether the back end may be called now.
    var canCall = true
    /// The person's reporting data; loaded only if a record that was read back has other references than were sent.
    var objects = ReportingObjects()
}

/// The operation that an entry still requests.
///
/// `submitRequested` states whether the entry is to be in the back end. If it was never set, an edit of an entry with a
/// record, such as an integration's, requests an update of the record.
enum EntryRequest: Equatable, Sendable {
    case none
    case submission
    /// Deletes the record; the entry becomes a draft.
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

/// A restore of the database, which lost the last transactions and their submissions.
struct Restore: Equatable, Sendable {
    /// Entries of days up to this one may have been sent by lost transactions.
    let throughDay: Day
    /// Time since the restore.
    let since: Duration
}

extension SubmissionState {
    /// Marks an entry that may have been sent before a restore. A ledger with an open attempt is current; others may be
    /// older than the last call.
    mutating func apply(_ restore: Restore?) {
        guard let restore, let desired, desired.day <= restore.throughDay else { return }
        if (ledger?.phase ?? .settled) == .settled { sinceRestore = restore.since }
    }
}

/// The result of a call to the back end.
enum SubmissionResult: Equatable, Sendable {
    /// The single record, as read back.
    case record(BackendEntry)
    /// A write was refused because this record replaced the addressed one.
    case successor(BackendEntry)
    /// No record: never written, or deleted.
    case absent
    /// Several records, with these ids, carry the entry's marker.
    case ambiguous([String])
    /// The back end refused the entry.
    case refused([String])
    /// The back end did not process the call; it may be retried.
    case notProcessed(reason: String, retryAfter: Duration?)
    /// The back end may have processed the call. `recordID` is the id that it returned, if any.
    case unknown(reason: String, recordID: String?, retryAfter: Duration? = nil)
    /// The call was not sent.
    case notMade
}

/// A call for the version of the ledger that opened it.
struct SubmissionCall: Equatable, Sendable {
    enum Action: Equatable, Sendable {
        case create(DesiredRecord)
        case update(id: String, DesiredRecord)
        case delete(id: String)
        /// Looks up the record of an attempt with an unknown outcome, by its id if there is one, otherwise by the
        /// marker.
        case find(id: String?, days: [Day])
    }
    var action: Action
    var version: Int64
}

/// The writes of a decision, and the next step.
struct SubmissionDecision: Equatable, Sendable {
    enum EntryChange: Equatable, Sendable {
        case patch(EntryPatch)
        /// An entry that was created in the back end.
        case put(TimeEntry)
        case tombstone
    }
    enum Step: Equatable, Sendable {
        case finished
        /// The entry requests another operation meanwhile: it is reprocessed.
        case reprocess
        /// The decision depends on the person's reporting data: nothing is written, and it is repeated with
        /// `SubmissionState.isValidated`.
        case validate
        case call(SubmissionCall)
        case deferred(reason: String, after: Duration, cause: DeferralCause)
        case deadLettered(reason: String)
    }
    struct LogLine: Equatable, Sendable {
        var status: EntryStatus
        var message: String?
        var code: TimeEntryStatus.Code?

        static let recordGone = LogLine(
            status: .invalid, message: "The back end no longer has this entry; submit it again", code: .recordGone)
    }

    /// The new ledger, with a version one above the loaded one; `nil` for no change.
    var ledger: Ledger?
    /// Duration of the lease or the settling from the commit on.
    var lease = Duration.zero
    var entry: EntryChange?
    var log: [LogLine] = []
    /// Whether the entry is removed: its ledger row and status log are removed too.
    var removesLedger = false
    var step: Step
}

/// The fields of an entry that the submitter writes.
struct EntryPatch: Equatable, Sendable {
    var status: EntryStatus?
    var backendID: String??
    /// `false` cancels a request to delete.
    var deleteRequested: Bool?
    /// `true` cancels a withdrawal.
    var submitRequested: Bool?
    /// Values of the back end that replace a refused edit.
    var restored: TimeEntry?
    /// The time of the newest line of the status log.
    var statusAt: Timestamp?
}

extension EntryPatch {
    /// Returns an entry with the patch applied.
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
