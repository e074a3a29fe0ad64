import Model

/// In which realms a defect is mirrored, and how.
enum MirrorRule {
    /// The mirrors of a defect, by the numbers of their realms.
    ///
    /// - Parameter people: The realms of the people who are known, by login name. Of others there is no mirror.
    static func mirrors(of defect: TrackedDefect, people: [String: Int32]) -> [Int32: Defect] {
        var mirrors: [Int32: Defect] = [:]
        let (owner, submitter) = (
            defect.owner.flatMap { people[$0] }, defect.submitter.flatMap { people[$0] }
        )
        for realm in Set([owner, submitter].compactMap(\.self)) {
            mirrors[realm] = Defect(
                record: defect.record, headline: defect.headline, state: defect.state, severity: defect.severity,
                priority: defect.priority, owner: defect.owner, submitter: defect.submitter,
                submitDate: defect.submitDate, isAssignedToMe: realm == owner, isReportedByMe: realm == submitter)
        }
        return mirrors
    }

    /// What is to be done with a mirror.
    enum Difference: Equatable {
        case put(Defect)
        case delete
    }

    /// What differs between what is stored in a realm and what is wanted there; `nil`: nothing.
    ///
    /// - Parameter stored: `nil` when there is none, or only a tombstone, or one that cannot be read.
    static func difference(stored: Defect?, isThere: Bool, wanted: Defect?) -> Difference? {
        guard let wanted else { return isThere ? .delete : nil }
        return stored == wanted ? nil : .put(wanted)
    }
}
