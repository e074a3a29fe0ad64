import Essentials
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
