public import Essentials
public import Model

/// An adapter to a back end that stores time entries.
///
/// An adapter translates each call into the back end's HTTP requests, and the responses into values. It keeps no state
/// that must survive a restart, never repeats a write that the back end may have processed, and has no rules about
/// entries: `entry-submitter` decides when to submit, how to handle an unknown outcome, and which status an entry gets.
///
/// **The error of a write** (``create(_:)``, ``update(_:to:)``, ``delete(_:of:before:)``) decides whether the write is
/// repeated. It is the most important part of an adapter:
///
/// | back end | error |
/// |---|---|
/// | validated the record and refused it | ``BackendError/refused(_:)`` |
/// | certainly did not process the request (unreachable, too many requests, expired session) | ``BackendError/notProcessed(reason:retryAfter:)`` |
/// | may have processed the request (lost or unreadable response, 5xx) | ``BackendError/outcomeUnknown(reason:retryAfter:)`` |
/// | was not called, because the ``WriteDeadline`` had passed | ``BackendError/deadlineExceeded`` |
/// | rejects the credentials or permissions of Fieldpost itself | ``BackendError/unauthorized(reason:)`` |
///
/// If in doubt, throw `outcomeUnknown`: the record is then looked up by its marker before the write is repeated.
///
/// A read throws `notProcessed` or `unauthorized`. It throws `refused` only if the person's references are
/// insufficient, because a refusal makes an entry invalid.
///
/// Calls run concurrently, also for one person. Each call must time out by itself, and must end when its task is
/// cancelled.
public protocol TimeBackend: Sendable {
    /// The features and limits of this kind of back end.
    var capabilities: BackendCapabilities { get }

    /// Returns the trees, contexts with suggestions, and templates that `person` may report on.
    ///
    /// Ids are derived from the back end's ids, so that repeated calls return equal ids.
    func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData

    /// Returns the person's live records on the days `from` through `through`, without cancelled and superseded ones.
    ///
    /// - Throws: ``BackendError/notProcessed(reason:retryAfter:)`` if a record cannot be decoded, because callers draw
    ///   conclusions from absent records.
    func entries(of person: BackendPerson, from: Day, through: Day) async throws(BackendError) -> [BackendEntry]

    /// Returns the same records as ``entries(of:from:through:)``, and reports undecodable ones in
    /// ``BackendRecords/unreadable`` instead of failing.
    ///
    /// The default implementation calls ``entries(of:from:through:)``.
    func records(of person: BackendPerson, from: Day, through: Day) async throws(BackendError) -> BackendRecords

    /// Returns a page of the records of `people` that were created or changed since `cursor`.
    ///
    /// Deletions need not be reported, and the absence of a record proves nothing. Called only if
    /// ``BackendCapabilities/supportsChangeFeed``.
    ///
    /// - Parameters:
    ///   - people: The owners of the records.
    ///   - cursor: The cursor of the previous page. `nil`, and a cursor that the adapter cannot read, request the
    ///     current position without earlier changes.
    func changes(of people: [BackendPerson], since cursor: String?) async throws(BackendError) -> BackendChanges

    /// Returns the live records of all `people` on the last of the days `from` through `through`.
    ///
    /// The records of each person are those of ``entries(of:from:through:)``, read with a few requests for all people
    /// together. Called only if ``BackendCapabilities/supportsBulkListing``.
    ///
    /// The adapter chooses the number of days per call, at least one: enough to need few requests, and few enough to
    /// finish before many records change and to need little memory. The method is called again for the days before
    /// ``BackendListing/from`` until none are left.
    ///
    /// - Returns: All records of the days that were read.
    /// - Throws: ``BackendError/notProcessed(reason:retryAfter:)`` if reading was interrupted or pages shifted; a
    ///   partial listing is never returned.
    func listing(of people: [BackendPerson], from: Day, through: Day) async throws(BackendError) -> BackendListing

    /// Returns all people whose time the back end stores, once each, including those who may not register time.
    ///
    /// They are proposals: an administrator confirms each identity. Called only if
    /// ``BackendCapabilities/supportsPeopleListing``.
    func people() async throws(BackendError) -> [BackendPersonProposal]

    /// Creates a record and releases it for approval.
    ///
    /// - Returns: The back end's id of the record. It is not proof of the outcome: the caller reads the status with
    ///   ``readBack(_:of:)``.
    func create(_ submission: Submission) async throws(BackendError) -> String

    /// Replaces the values of a record.
    ///
    /// - Returns: The id of the record after the change. It differs from `id` in back ends that replace approved
    ///   records.
    func update(_ id: String, to submission: Submission) async throws(BackendError) -> String

    /// Deletes or cancels a record. The request must not be sent after `deadline`.
    func delete(_ id: String, of person: BackendPerson, before deadline: WriteDeadline) async throws(BackendError)

    /// Returns the current record, cancelled ones included; `nil` if the person has no record with this id.
    func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry?

    /// Returns the live records that carry `marker`, without cancelled and superseded ones.
    ///
    /// One record proves that the entry was written. More than one is reported to an operator.
    func lookUp(marker: String, of person: BackendPerson, on day: Day) async throws(BackendError) -> [BackendEntry]
}

extension TimeBackend {
    /// Calls ``entries(of:from:through:)``, for adapters that read either all of a person's records or none.
    public func records(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> BackendRecords {
        BackendRecords(entries: try await entries(of: person, from: from, through: through))
    }

    /// Throws, for back ends without a change feed.
    public func changes(
        of people: [BackendPerson], since cursor: String?
    ) async throws(BackendError) -> BackendChanges {
        throw .refused(["The back end cannot report changes"])
    }

    /// Throws, for back ends that list the records of one person at a time.
    public func listing(
        of people: [BackendPerson], from: Day, through: Day
    ) async throws(BackendError) -> BackendListing {
        throw .refused(["The back end cannot list the records of all people"])
    }

    /// Throws, for back ends without e-mail addresses of people.
    public func people() async throws(BackendError) -> [BackendPersonProposal] {
        throw .refused(["The back end cannot list people"])
    }
}

/// The features and limits in which back ends differ.
///
/// | property | read by |
/// |---|---|
/// | ``supportsChangeFeed``, ``supportsBulkListing`` | the poller, to choose the calls between full comparisons |
/// | ``supportsPeopleListing`` | the command line |
/// | ``textLimit`` | the submitter, to reject a text that the back end would truncate |
/// | all others | the contract tests only, which verify that the adapter behaves as declared |
public struct BackendCapabilities: Equatable, Sendable {
    /// The changes that are possible to an approved record.
    public enum ApprovedRecord: Equatable, Sendable {
        /// None: updates and deletions are refused.
        case isFinal
        /// An update replaces it by a successor with another id, which needs approval again. A deletion cancels it.
        case isReplaced
    }

    /// The changes that are possible to an approved record.
    public var approvedRecord: ApprovedRecord
    /// Whether an approver can reject a record, so that it becomes ``BackendStatus/rejected``.
    public var hasRejection: Bool
    /// The unit to which lengths are rounded, half up: 36 for hundredths of an hour, 1 if seconds are stored.
    public var durationStepSeconds: Int
    /// Whether ``TimeBackend/changes(of:since:)`` is supported: records have a time stamp of their last change.
    public var supportsChangeFeed: Bool
    /// Whether ``TimeBackend/listing(of:from:through:)`` is supported: one request can return the records of many
    /// people. Not used if ``supportsChangeFeed``.
    public var supportsBulkListing: Bool
    /// Whether ``TimeBackend/people()`` is supported: the back end stores the e-mail addresses of people.
    public var supportsPeopleListing: Bool
    /// Maximum length of a person's text in ``textUnit``, without the marker and the space before it.
    public var textLengthMax: Int
    /// The unit of ``textLengthMax``.
    public var textUnit: TextLimit.Unit
    /// The maximum length of a person's text with its unit.
    public var textLimit: TextLimit { TextLimit(textLengthMax, textUnit) }

    /// Creates capabilities.
    public init(
        approvedRecord: ApprovedRecord, hasRejection: Bool, durationStepSeconds: Int, supportsChangeFeed: Bool = false,
        supportsBulkListing: Bool = false, supportsPeopleListing: Bool = false,
        textLengthMax: Int = TimeEntry.submittedTextLengthMax,
        textUnit: TextLimit.Unit = .utf16
    ) {
        self.approvedRecord = approvedRecord
        self.hasRejection = hasRejection
        self.durationStepSeconds = durationStepSeconds
        self.supportsChangeFeed = supportsChangeFeed
        self.supportsBulkListing = supportsBulkListing
        self.supportsPeopleListing = supportsPeopleListing
        self.textLengthMax = textLengthMax
        self.textUnit = textUnit
    }
}

/// The reason why a back end did not complete a request; ``TimeBackend`` defines when to throw which.
public enum BackendError: Error, Equatable, Sendable {
    /// The back end validated the request and refused it, with one message for the person per problem. Not retried.
    case refused([String])
    /// The back end did not process the request. The caller may retry, after `retryAfter` if given.
    case notProcessed(reason: String, retryAfter: Duration?)
    /// The back end may have processed the request. The caller looks up the record before it retries, after
    /// `retryAfter` if given.
    case outcomeUnknown(reason: String, retryAfter: Duration? = nil)
    /// The write was not sent: its ``WriteDeadline`` had passed.
    case deadlineExceeded
    /// The back end rejected Fieldpost's own credentials or permissions. An operator must act; the entry is valid.
    case unauthorized(reason: String)
}
