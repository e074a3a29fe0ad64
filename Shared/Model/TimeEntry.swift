public import Essentials
public import FoundationEssentials

/// A choice of an entry: a node for a context. A context may have several.
public struct ReportingSelection: Codable, Hashable, Sendable {
    /// The id of the `ReportingContext` object.
    public var context: UUID
    /// The id of the `ReportingTreeNode` object.
    public var node: UUID

    enum CodingKeys: String, CodingKey, ClosedCodingKeys {
        case context, node
    }

    /// Creates a choice.
    public init(context: UUID, node: UUID) {
        self.context = context
        self.node = node
    }
}

/// Fields of a `TimeEntry` object: time that a person registers on a day.
///
/// A draft needs only a status; `entry-submitter` reports missing fields when the entry is submitted.
public struct TimeEntry: Codable, Equatable, Sendable {
    /// Maximum length of a text in Unicode scalars; ``submittedTextLengthMax`` applies when the entry is submitted.
    public static let textLengthMax = 1000
    /// Maximum length of the text of a submitted entry in UTF-16 code units, unless the back end has another limit or
    /// unit (the first model's app displays it next to the field).
    public static let submittedTextLengthMax = 40
    /// Maximum number of selections of an entry.
    public static let selectionsMax = 64

    /// The way in which the duration of an entry is specified.
    public enum TimeType: String, Codable, CaseIterable, Sendable {
        /// By ``TimeEntry/startTime`` and ``TimeEntry/endTime``.
        case interval
        /// By ``TimeEntry/durationSeconds``.
        case duration
    }

    /// The id of the record in the back end, once there is one. Server-owned.
    public var backendId: String?
    /// The entry's status. A device sets only `suggestion` and `draft`.
    public var status: EntryStatus
    /// The person's text; at most ``TimeEntry/submittedTextLengthMax`` characters when the entry is submitted.
    public var text: String?
    /// The id of the `ReportingTemplate` object.
    public var reportingTemplate: UUID?
    /// The chosen nodes.
    public var reporting: [ReportingSelection]
    /// The time fields that apply.
    public var timeType: TimeType
    /// The day on which the time is registered.
    public var entryDate: Day?
    /// The start of the work, for an interval.
    public var startTime: ZonedTime?
    /// The end of the work, for an interval.
    public var endTime: ZonedTime?
    /// The duration in seconds, if ``timeType`` is a duration. (The first model's older `duration` was a fraction of
    /// hours.)
    public var durationSeconds: Int?
    /// The day on which the entry was created, as its device reports it; `nil` for entries created elsewhere.
    public var createdOn: Day?
    /// Whether the device requests that the entry be submitted.
    public var submitRequested: Bool?
    /// Whether the device deleted an entry that the back end may have; it is removed when the back end confirms.
    /// Server-owned.
    public var deleteRequested: Bool?
    /// The time of the newest line of the entry's status log, whose status is ``status``. Server-owned; `nil` before
    /// the first line.
    public var statusAt: Timestamp?

    /// Creates the fields of an entry.
    public init(
        backendId: String? = nil, status: EntryStatus = .draft, text: String? = nil, reportingTemplate: UUID? = nil,
        reporting: [ReportingSelection] = [], timeType: TimeType = .duration, entryDate: Day? = nil,
        startTime: ZonedTime? = nil, endTime: ZonedTime? = nil, durationSeconds: Int? = nil, createdOn: Day? = nil,
        submitRequested: Bool? = nil, deleteRequested: Bool? = nil, statusAt: Timestamp? = nil
    ) {
        self.backendId = backendId
        self.status = status
        self.text = text
        self.reportingTemplate = reportingTemplate
        self.reporting = reporting
        self.timeType = timeType
        self.entryDate = entryDate
        self.startTime = startTime
        self.endTime = endTime
        self.durationSeconds = durationSeconds
        self.createdOn = createdOn
        self.submitRequested = submitRequested
        self.deleteRequested = deleteRequested
        self.statusAt = statusAt
    }

    /// Reads the fields; absent and null are equivalent. `status` defaults to draft, `timeType` to duration.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        backendId = try container.decodeIfPresent(String.self, forKey: .backendId)
        status = try container.decodeIfPresent(EntryStatus.self, forKey: .status) ?? .draft
        text = try container.decodeIfPresent(String.self, forKey: .text)
        reportingTemplate = try container.decodeIfPresent(UUID.self, forKey: .reportingTemplate)
        reporting = try container.decodeIfPresent([ReportingSelection].self, forKey: .reporting) ?? []
        timeType = try container.decodeIfPresent(TimeType.self, forKey: .timeType) ?? .duration
        entryDate = try container.decodeIfPresent(Day.self, forKey: .entryDate)
        startTime = try container.decodeIfPresent(ZonedTime.self, forKey: .startTime)
        endTime = try container.decodeIfPresent(ZonedTime.self, forKey: .endTime)
        durationSeconds = try container.decodeIfPresent(Int.self, forKey: .durationSeconds)
        createdOn = try container.decodeIfPresent(Day.self, forKey: .createdOn)
        submitRequested = try container.decodeIfPresent(Bool.self, forKey: .submitRequested)
        deleteRequested = try container.decodeIfPresent(Bool.self, forKey: .deleteRequested)
        statusAt = try container.decodeIfPresent(Timestamp.self, forKey: .statusAt)
    }
}

extension TimeEntry {
    /// The length in seconds, by ``timeType``; `nil` if fields of it are missing.
    package var seconds: Int? {
        switch timeType {
        case .duration: return durationSeconds
        case .interval:
            guard let startTime, let endTime else { return nil }
            return startTime.seconds(until: endTime)
        }
    }
}

extension TimeEntry: KindFields {
    typealias CodingKeys = EntryField

    package var objection: String? {
        durationSeconds.flatMap {
            Int32(exactly: $0) == nil ? "'durationSeconds' must be a whole number of 32 bits" : nil
        }
    }

    /// The row of ``Kind/timeEntry``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], route: Route(to: Topics.entry, from: [.user]))
}
