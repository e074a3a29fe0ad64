import Model

/// Which objects an import writes, and where: what belongs to people, not what services make of it.
enum ImportRule {
    /// Why objects of a kind are not imported into a realm; `nil` when they are.
    ///
    /// - Parameter hasBackend: Whether Fieldpost asks a back end for the people's choices and entries.
    static func objection(to kind: Kind, in realm: RealmClass.Name, hasBackend: Bool) -> String? {
        if let reason = reason(against: kind, hasBackend) { return reason }
        let realms = realms(of: kind)
        if realms.contains(realm) { return nil }
        let places = realms.map(\.pattern).joined(separator: " and ")
        let copies = kind.row.realms.contains(realm) ? copyReason(kind) : nil
        return "\(kind.rawValue) objects are imported into \(places)" + (copies.map { ": " + $0 } ?? "")
    }

    /// Where people write objects of a kind: elsewhere they are copies.
    private static func realms(of kind: Kind) -> [RealmClass.Name] {
        switch kind {
        case .fieldTask: [.manager]
        case .location, .appointment, .note: [.user]
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .person, .personLookup, .team, .membership, .share, .sharedItem, .poll, .seenRecord, .notice, .defect,
            .defectPoll, .defectCommand, .defectAccount, .deliveryChoice:
            kind.row.realms
        }
    }

    private static func copyReason(_ kind: Kind) -> String? {
        switch kind {
        case .fieldTask: "those elsewhere are copies, which task-fan-out makes"
        case .location: "those elsewhere are copies, which location-fan-out makes"
        case .appointment, .note: "those elsewhere are copies, which share-fan-out makes"
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .person, .personLookup, .team, .membership, .share, .sharedItem, .poll, .seenRecord, .notice, .defect,
            .defectPoll, .defectCommand, .defectAccount, .deliveryChoice:
            nil
        }
    }

    private static func reason(against kind: Kind, _ hasBackend: Bool) -> String? {
        switch kind {
        case .poll, .seenRecord, .defectPoll: "\(kind.rawValue) objects are services' own"
        case .realms: "Realms objects are made by: fieldpost environment invite"
        case .share: "share-fan-out makes Share objects, of SharedItem objects"
        case .deliveryChoice: "people choose for themselves how they are told of notices"
        case .defectCommand: "DefectCommand objects are handed in by their people, to be done once"
        case .defectAccount: "DefectAccount objects are made by: PUT /v1/credentials/compass"
        case .defect: "defect-notifier makes Defect objects, of what the tracker of defects says"
        case .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus:
            hasBackend ? "\(kind.rawValue) objects come from the environment's back end" : nil
        case .person, .personLookup, .team, .membership, .location, .fieldTask, .appointment, .note, .sharedItem,
            .notice:
            nil
        }
    }
}
