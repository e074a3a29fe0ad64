public import Essentials
public import Model

/// What Fieldpost needs of a back end that keeps people's time: the whole of an adapter.
///
/// An adapter turns each call into the back end's HTTP and its answers into the values here. It keeps no state that
/// must survive a restart, never repeats a write that may have been done, and holds no rule about entries: when to
/// submit, what to do after an unknown outcome, which status an entry gets is decided by `entry-submitter`.
///
/// **The one thing to get right is the error of a write** (``create(_:)``, ``update(_:to:)``,
/// ``delete(_:of:before:)``), since it decides whether the write is repeated:
///
/// | the back end | error |
/// |---|---|
/// | looked at the record and says no (validation) | ``BackendError/refused(_:)`` |
/// | certainly did nothing (not reached, too many requests, a session that expired) | ``BackendError/notProcessed(reason:retryAfter:)`` |
/// | may have done it (lost answer, 5xx, an answer that cannot be read) | ``BackendError/outcomeUnknown(reason:retryAfter:)`` |
/// | was not asked, because the ``WriteDeadline`` had passed | ``BackendError/tooLate`` |
/// | does not accept the credentials or permissions of Fieldpost itself | ``BackendError/unauthorized(reason:)`` |
///
/// A read throws `notProcessed` or `unauthorized`; `refused` only when the person's references do not suffice, since
/// a refusal makes an entry invalid.
///
/// When in doubt it is `outcomeUnknown`: the record is then looked up by its marker before anything is repeated.
///
/// Calls run concurrently, for one person too. Each must end within a bound of the adapter's own, and stop when its
/// task is cancelled.
public protocol TimeBackend: Sendable {
    /// What this kind of back end does with its records.
    var capabilities: BackendCapabilities { get }

    /// Everything `person` may report on: trees, contexts with suggestions, templates.
    ///
    /// Ids are made from the back end's ids, so that a second call gives the same ids.
    func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData

    /// The person's records from `from` through `through`, both included; cancelled and superseded ones left out.
    func entries(of person: BackendPerson, from: Day, through: Day) async throws(BackendError) -> [BackendEntry]

    /// The same as ``entries(of:from:through:)``, but a record that cannot be read does not cost the others: it is
    /// named in ``BackendRecords/unreadable``, and nothing is concluded from its absence.
    func records(of person: BackendPerson, from: Day, through: Day) async throws(BackendError) -> BackendRecords

    /// The records of `people` that were created or changed since `cursor`, part by part; deleted ones need not be
    /// told, and nothing is concluded from what is not told. Only called where ``BackendCapabilities/tellsChanges``.
    ///
    /// - Parameter cursor: That of the part before. Without one, what was so far is not asked for: all that is wanted
    ///   is a cursor to begin at. One that the adapter cannot read counts as none.
    func changes(of people: [BackendPerson], since cursor: String?) async throws(BackendError) -> BackendChanges

    /// The records of all of `people` on the last of the days from `from` through `through`, both included: of each
    /// person what ``entries(of:from:through:)`` tells of these days, in a few requests for all of them together. Only
    /// called where ``BackendCapabilities/listsEverybody``.
    ///
    /// How many days are read at a time is the adapter's to choose, at least one: so many that a reading costs few
    /// requests, ends before much has changed meanwhile, and takes little memory. It is called again for the days
    /// before ``BackendListing/from``, until there are none.
    ///
    /// - Returns: All of these days, never a part: a reading that was broken off, or whose pages shifted, throws.
    func listing(of people: [BackendPerson], from: Day, through: Day) async throws(BackendError) -> BackendListing

    /// Everybody whom the back end knows as somebody whose time it keeps, each once, those who may not register time
    /// too. They are proposals: an administrator confirms who is whom. Only called where
    /// ``BackendCapabilities/tellsPeople``.
    func people() async throws(BackendError) -> [BackendPersonProposal]

    /// Writes a new record and asks for its release.
    ///
    /// - Returns: The back end's id of the record. It is no proof: what the record has become is read with
    ///   ``readBack(_:of:)``.
    func create(_ submission: Submission) async throws(BackendError) -> String

    /// Changes a record.
    ///
    /// - Returns: The id under which the record is found from now on; a back end that replaces approved records gives
    ///   another one.
    func update(_ id: String, to submission: Submission) async throws(BackendError) -> String

    /// Deletes or cancels a record.
    func delete(_ id: String, of person: BackendPerson, before deadline: WriteDeadline) async throws(BackendError)

    /// The record as the back end has it now, cancelled ones too; nil when it has none with this id.
    func readBack(_ id: String, of person: BackendPerson) async throws(BackendError) -> BackendEntry?

    /// The records that carry `marker`, cancelled and superseded ones left out.
    ///
    /// Exactly one is the answer to "was it written?"; more are an alarm for a person.
    func lookUp(marker: String, of person: BackendPerson, on day: Day) async throws(BackendError) -> [BackendEntry]
}

extension TimeBackend {
    /// For adapters that read all of a person's records, or fail.
    public func records(
        of person: BackendPerson, from: Day, through: Day
    ) async throws(BackendError) -> BackendRecords {
        BackendRecords(entries: try await entries(of: person, from: from, through: through))
    }

    /// For back ends that cannot tell what has changed.
    public func changes(
        of people: [BackendPerson], since cursor: String?
    ) async throws(BackendError) -> BackendChanges {
        throw .refused(["The back end cannot tell what has changed"])
    }

    /// For back ends that list the records of one person at a time.
    public func listing(
        of people: [BackendPerson], from: Day, through: Day
    ) async throws(BackendError) -> BackendListing {
        throw .refused(["The back end cannot list everybody's records"])
    }

    /// For back ends in which nothing leads from a person to an e-mail address.
    public func people() async throws(BackendError) -> [BackendPersonProposal] {
        throw .refused(["The back end cannot tell its people"])
    }
}

/// What back ends do differently.
///
/// The poller reads ``tellsChanges`` and ``listsEverybody``, to know what it can ask for between its comparisons of
/// everything that people have, the command line ``tellsPeople``, and the submitter ``textLimit``, to tell a person
/// before the back end cuts a text. The others are for the contract suite
/// alone, which checks that the adapter does as they say: the submitter learns what a back end does from its answers.
public struct BackendCapabilities: Equatable, Sendable {
    /// What can still be done with an approved record.
    public enum ApprovedRecord: Equatable, Sendable {
        /// Nothing: changing and deleting it are refused.
        case isFinal
        /// It is replaced by a successor with another id, which is to be approved in its turn; or it is cancelled.
        case isReplaced
    }

    /// What can still be done with an approved record.
    public var approvedRecord: ApprovedRecord
    /// Whether an approver can refuse a record, so that it becomes ``BackendStatus/rejected``.
    public var hasRejection: Bool
    /// What lengths are rounded to, half up: 36 for hundredths of an hour, 1 where seconds are kept.
    public var durationStepSeconds: Int
    /// Whether ``TimeBackend/changes(of:since:)`` can be asked, because records have a time stamp of their last change.
    public var tellsChanges: Bool
    /// Whether ``TimeBackend/listing(of:from:through:)`` can be asked, because a request can be for the records of many
    /// people. Where changes are told, nobody asks for it.
    public var listsEverybody: Bool
    /// Whether ``TimeBackend/people()`` can be asked, because the back end knows its people's e-mail addresses.
    public var tellsPeople: Bool
    /// How much of a person's text it keeps, in ``textUnit``, the marker and the space before it not
    /// counted.
    public var textLengthMax: Int
    /// The unit in which the back end counts a text's length.
    public var textUnit: TextLimit.Unit
    /// The longest text of a person that it keeps.
    public var textLimit: TextLimit { TextLimit(textLengthMax, textUnit) }

    /// Capabilities.
    public init(
        approvedRecord: ApprovedRecord, hasRejection: Bool, durationStepSeconds: Int, tellsChanges: Bool = false,
        listsEverybody: Bool = false, tellsPeople: Bool = false, textLengthMax: Int = TimeEntry.submittedTextLengthMax,
        textUnit: TextLimit.Unit = .utf16
    ) {
        self.approvedRecord = approvedRecord
        self.hasRejection = hasRejection
        self.durationStepSeconds = durationStepSeconds
        self.tellsChanges = tellsChanges
        self.listsEverybody = listsEverybody
        self.tellsPeople = tellsPeople
        self.textLengthMax = textLengthMax
        self.textUnit = textUnit
    }
}

/// Why a back end did not do what it was asked. See ``TimeBackend`` for which is which.
public enum BackendError: Error, Equatable, Sendable {
    /// The back end looked at the request and refuses it: one message for a person per problem. Repeating is no use.
    case refused([String])
    /// The back end did nothing, and may do it later; not before `retryAfter`, when it says so.
    case notProcessed(reason: String, retryAfter: Duration?)
    /// The back end may have done it. It must be looked up before it is repeated; not before `retryAfter`, when it says
    /// so.
    case outcomeUnknown(reason: String, retryAfter: Duration? = nil)
    /// The write was not sent: its ``WriteDeadline`` had passed.
    case tooLate
    /// Fieldpost's own credentials or permissions are refused: for an operator, never the fault of an entry.
    case unauthorized(reason: String)
}
