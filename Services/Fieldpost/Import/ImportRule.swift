import Model

/// The kinds that an import writes, and their realms: objects of people, not those that services create.
enum ImportRule {
    /// Returns the reason why objects of a kind cannot be imported into a realm; `nil` if they can.
    ///
    /// - Parameter hasBackend: Whether Fieldpost has a back end for the people's choices and entries.
    static func objection(to kind: Kind, in realm: RealmClass.Name, hasBackend: Bool) -> String? {
        if let reason = reason(against: kind, hasBackend) { return reason }
        let originals = originals(of: kind)
        if originals.realms.contains(realm) { return nil }
        let patterns = originals.realms.map(\.pattern).joined(separator: " and ")
        let reason = kind.row.realms.contains(realm) ? originals.copyReason : nil
        return "\(kind.rawValue) objects are imported into \(patterns)" + (reason.map { ": " + $0 } ?? "")
    }

    /// The realms of original objects, and the origin of the objects in other realms, which are copies.
    private static func originals(of kind: Kind) -> (realms: [RealmClass.Name], copyReason: String?) {
        switch kind {
        case .fieldTask: ([.manager], "other realms have copies, which task-fan-out creates")
        case .location: ([.user], "other realms have copies, which location-fan-out creates")
        case .appointment, .note: ([.user], "other realms have copies, which share-fan-out creates")
        case .realms, .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus,
            .person, .personLookup, .team, .membership, .share, .sharedItem, .poll, .seenRecord, .notice, .defect,
            .defectPoll, .defectCommand, .defectAccount, .deliveryChoice, .deletedObject, .endedShare, .privateProfile,
            .taskNote, .writeCheckpoint, .own:
            (kind.row.realms, nil)
        }
    }

    private static func reason(against kind: Kind, _ hasBackend: Bool) -> String? {
        switch kind {
        case .poll, .seenRecord, .defectPoll, .writeCheckpoint: "\(kind.rawValue) objects belong to services"
        case .realms: "Realms objects are created by: fieldpost environment invite"
        case .share: "share-fan-out creates Share objects from SharedItem objects"
        case .deliveryChoice: "people choose their deliveries of notices on their devices"
        case .deletedObject: "the gateway and share-fan-out create DeletedObject objects at deletions"
        case .taskNote: "people write TaskNote objects on their devices"
        case .endedShare: "share-fan-out creates EndedShare objects"
        case .defectCommand: "DefectCommand objects are submitted by people's devices, and executed once"
        case .defectAccount: "DefectAccount objects are created by: PUT /v1/credentials/compass"
        case .defect: "defect-notifier creates Defect objects from the defect tracker"
        case .user, .reportingTreeNode, .reportingContext, .reportingTemplate, .timeEntry, .timeEntryStatus:
            hasBackend ? "\(kind.rawValue) objects come from the environment's back end" : nil
        case .person, .personLookup, .team, .membership, .location, .fieldTask, .appointment, .note, .sharedItem,
            .notice, .privateProfile, .own:
            nil
        }
    }
}
