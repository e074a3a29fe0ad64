import Essentials
import Model

/// Which notice a row of the history makes.
enum NoticeRule {
    /// A notice, and whom it is for.
    struct Told: Equatable {
        /// The login name of the defect's owner, as the row tells it.
        let owner: String
        let code: Notice.Code
        let text: String
    }

    /// The actions by which a defect comes to whoever owns it after; all others change it.
    ///
    /// Source: the vendor's sample app, which tells of `Submit`, `Assign` and `Modify` alone. Changes of state by other
    /// actions are changes too.
    static let assigningActions: Set = ["Submit", "Assign"]

    /// A headline is cut after so many Unicode scalars: a notice has 4 KB.
    private static let headlineScalarsMax = 800

    /// - Returns: `nil` when nobody is told: the defect is nobody's, or its owner did it.
    static func told(of row: HistoryRow) -> Told? {
        guard let owner = row.defect.owner, owner != row.user else { return nil }
        let headline = row.defect.headline.prefix(scalars: headlineScalarsMax)
        let name = "\(row.defect.record) (\(headline))"
        return assigningActions.contains(row.action)
            ? Told(owner: owner, code: .defectAssigned, text: "\(name) has been assigned to you")
            : Told(owner: owner, code: .defectModified, text: "\(name) has been modified")
    }
}
