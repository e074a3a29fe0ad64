/// Fields of a `Defect` object: a defect in the environment's tracker that is assigned to a person or was reported by
/// them. In the person's own realm; `defect-notifier` mirrors the tracker's record.
///
/// Its id is derived from the tracker and the record (name-based), so that it is the same in every person's realm.
public struct Defect: Codable, Equatable, Sendable {
    /// The tracker's id of the record, such as `SAMPL00000001`.
    public var record: String
    /// The tracker's headline.
    public var headline: String
    /// The tracker's name of the state, such as `Opened`.
    public var state: String?
    /// The severity, such as `2-Major`.
    public var severity: String?
    /// The priority, such as `3-Normal Queue`.
    public var priority: String?
    /// The assignee's login name in the tracker.
    public var owner: String?
    /// The reporter's login name in the tracker.
    public var submitter: String?
    /// The time of the report in the tracker's format: its local time, without a zone.
    public var submitDate: String?
    /// Whether it is assigned to the realm's person; false if absent.
    public var isAssignedToMe: Bool
    /// Whether the realm's person reported it; false if absent.
    public var isReportedByMe: Bool

    /// Creates the fields of a defect.
    public init(
        record: String, headline: String, state: String? = nil, severity: String? = nil, priority: String? = nil,
        owner: String? = nil, submitter: String? = nil, submitDate: String? = nil, isAssignedToMe: Bool = false,
        isReportedByMe: Bool = false
    ) {
        self.record = record
        self.headline = headline
        self.state = state
        self.severity = severity
        self.priority = priority
        self.owner = owner
        self.submitter = submitter
        self.submitDate = submitDate
        self.isAssignedToMe = isAssignedToMe
        self.isReportedByMe = isReportedByMe
    }
}

extension Defect: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case record, headline, state, severity, priority, owner, submitter, submitDate, isAssignedToMe, isReportedByMe
    }

    /// The row of ``Kind/defect``.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user], ids: .natural)
}
