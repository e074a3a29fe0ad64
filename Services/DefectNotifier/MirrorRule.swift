import Model

/// The realms that mirror a defect, and the mirrors' content.
enum MirrorRule {
    /// Returns the mirrors of a defect, by the numbers of their realms.
    ///
    /// - Parameter people: The realms of people by login name. Other owners and submitters get no mirror.
    static func mirrors(of defect: TrackedDefect, people: [String: Int32]) -> [Int32: Defect] {
        var mirrors: [Int32: Defect] = [:]
        let (owner, submitter) = (defect.owner.flatMap { people[$0] }, defect.submitter.flatMap { people[$0] })
        for realm in Set([owner, submitter].compactMap(\.self)) {
            mirrors[realm] = Defect(
                record: defect.record, headline: defect.headline, state: defect.state, severity: defect.severity,
                priority: defect.priority, owner: defect.owner, submitter: defect.submitter,
                submitDate: defect.submitDate, isAssignedToMe: realm == owner, isReportedByMe: realm == submitter)
        }
        return mirrors
    }

    /// A required change of a mirror.
    enum Difference: Equatable {
        case put(Defect)
        case delete
    }

    /// Returns the change that makes the stored mirror equal to the desired one; `nil`: they are equal.
    ///
    /// - Parameters:
    ///   - stored: The stored mirror; `nil` if there is none, only a tombstone, or one that does not decode.
    ///   - exists: Whether the realm has the object, decodable or not.
    static func difference(stored: Defect?, exists: Bool, desired: Defect?) -> Difference? {
        guard let desired else { return exists ? .delete : nil }
        return stored == desired ? nil : .put(desired)
    }
}
