import Essentials
import FoundationEssentials
import Model

/// The notice that a row of the history causes.
enum NoticeRule {
    /// A notice with its recipient.
    struct AddressedNotice: Equatable {
        /// The login name of the defect's owner, from the row.
        let owner: String
        let code: Notice.Code
        let text: String
    }

    /// The actions that assign a defect to its owner. All other actions modify it.
    ///
    /// Source: the vendor's sample app, which lists only `Submit`, `Assign` and `Modify`. Changes of state by other
    /// actions count as modifications.
    static let assigningActions: Set = ["Submit", "Assign"]

    /// Limit of a headline in Unicode scalars, because a notice is limited to 4 KB.
    private static let headlineScalarsMax = 800

    /// - Returns: `nil` if the defect has no owner, or if its owner performed the action.
    static func notice(for row: HistoryRow) -> AddressedNotice? {
        guard let owner = row.defect.owner, owner != row.user else { return nil }
        let headline = row.defect.headline.prefix(scalars: headlineScalarsMax)
        let name = "\(row.defect.record) (\(headline))"
        return assigningActions.contains(row.action)
            ? AddressedNotice(owner: owner, code: .defectAssigned, text: "\(name) has been assigned to you")
            : AddressedNotice(owner: owner, code: .defectModified, text: "\(name) has been modified")
    }
}

/// The retention of a person's notices.
enum NoticeRetentionRule {
    /// Limit on notices of one person about defects. The newest are retained.
    static let countMax = 500
    /// Maximum age of a notice, in days.
    static let daysMax = 90

    /// A notice's id and time.
    struct DatedNotice: Equatable {
        let id: UUID
        let timestamp: Timestamp
    }

    /// Returns the retention limit. Older notices are removed.
    static func oldest(now: Timestamp) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: now.millisecondsSinceEpoch - Int64(daysMax) * 86_400_000)
    }

    /// Returns the notices to remove. Of notices with equal times, those with the greater ids are removed, so that the
    /// result does not depend on their order.
    static func surplus(of notices: [DatedNotice], now: Timestamp) -> Set<UUID> {
        let oldest = oldest(now: now)
        let (aged, young) = (notices.filter { $0.timestamp < oldest }, notices.filter { $0.timestamp >= oldest })
        let newestFirst = young.sorted { ($1.timestamp, $0.id.text) < ($0.timestamp, $1.id.text) }
        return Set(aged.map(\.id) + newestFirst.dropFirst(countMax).map(\.id))
    }
}
